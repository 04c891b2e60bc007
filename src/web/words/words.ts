/** The page's languages. */
import { en, type Words } from './en.ts'
import { pt } from './pt.ts'

export type { Words }
export type Language = 'pt' | 'en'

export const languages: Record<Language, { name: string; words: Words }> = {
  pt: { name: 'Português', words: pt },
  en: { name: 'English', words: en },
}

/** The first wish that is a language of the page; else English. */
export function pickLanguage(...wishes: readonly (string | null | undefined)[]): Language {
  const asked = wishes.map(wish => wish?.toLowerCase().split('-')[0])
  return asked.find(language => language === 'pt' || language === 'en') ?? 'en'
}
