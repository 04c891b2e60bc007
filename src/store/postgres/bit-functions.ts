/** What a search calls for single days: who has a short word, as bits, and which bits are set. */
import { letters } from '../read-model/letters.ts'
import { coding } from '../read-model/short-words.ts'

/** Of a function that reads no table. The caller's search path is pg_catalog. */
const plainAttributes = 'LANGUAGE plpgsql IMMUTABLE STRICT'

/** A letter as it is written in a line, as bytes. */
const codeInSql = (letter: string, from: number) =>
  `decode(to_hex(${from - 1} + strpos('${letters}', ${letter})), 'hex')`
/** In a line as text: any third letter. */
const anyThird = `[${String.fromCharCode(coding.third)}-${String.fromCharCode(coding.third + letters.length)}]`

/** Who has a word of up to four letters, by the part of a day that holds its line if anything does. */
export const findShort = `
  CREATE FUNCTION fatura.find_short(p_part bytea, p_word text, p_none varbit) RETURNS varbit ${plainAttributes} AS $body$
  DECLARE
    v_mark bytea := convert_to(E'\\n' || left(p_word, 2) || '=', 'UTF8');
    v_line bytea; v_at integer; v_byte integer; v_text integer := -1; v_found varbit := p_none;
  BEGIN
    v_at := position(v_mark IN p_part);
    IF v_at = 0 THEN RETURN p_none; END IF;
    v_line := substring(p_part FROM v_at + length(v_mark));
    v_at := position('\\x0a'::bytea IN v_line);
    IF v_at > 0 THEN v_line := substring(v_line FROM 1 FOR v_at - 1); END IF;
    IF length(p_word) > 2 THEN
      v_at := position(${codeInSql('substr(p_word, 3, 1)', coding.third)} IN v_line);
      IF v_at = 0 THEN RETURN p_none; END IF;
      v_line := substring(v_line FROM v_at + 1);
    END IF;
    IF length(p_word) > 3 THEN
      v_at := position(${codeInSql('substr(p_word, 4, 1)', coding.fourth)} IN v_line);
      IF v_at = 0 OR convert_from(substring(v_line FROM 1 FOR v_at - 1), 'LATIN1') ~ '${anyThird}' THEN RETURN p_none; END IF;
      v_line := substring(v_line FROM v_at + 1);
    END IF;
    FOR v_at IN 0 .. length(v_line) - 1 LOOP
      v_byte := get_byte(v_line, v_at);
      IF v_byte > ${coding.skip} THEN
        v_text := v_text + (v_byte - ${coding.skip}) * ${coding.far};
      ELSIF v_byte > ${coding.behind} THEN
        v_text := v_text + v_byte - ${coding.behind};
        v_found := set_bit(v_found, v_text, 1);
      ELSE
        EXIT WHEN length(p_word) > 3 OR v_byte >= ${coding.third} AND length(p_word) > 2;
        v_text := -1;
      END IF;
    END LOOP;
    RETURN v_found;
  END $body$;`

/** Which bits are set, from 0 on. */
export const findPlaces = `
  CREATE FUNCTION fatura.find_places(p_bits varbit) RETURNS integer[] ${plainAttributes} AS $body$
  DECLARE v_bits varbit := p_bits; v_at integer := position(B'1' IN p_bits); v_last integer := -1; v_places integer[] := '{}';
  BEGIN
    WHILE v_at > 0 LOOP
      v_last := v_last + v_at;
      v_places := v_places || v_last;
      v_bits := v_bits << v_at;
      v_at := position(B'1' IN v_bits);
    END LOOP;
    RETURN v_places;
  END $body$;`
