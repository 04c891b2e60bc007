/** Writes the mail that contains links, in Portuguese and English, as text and as HTML. */

export interface MailLink {
  /** The customer's name. */
  name: string
  url: string
}

export interface Mail {
  subject: string
  text: string
  html: string
}

const languages = [
  {
    code: 'pt-PT',
    greeting: (company: string) => `Pediu uma ligação para ver as suas faturas de ${company}.`,
    open: 'Ver as faturas',
    rest: 'É válida durante uma hora, só para si: não a reencaminhe. Se não a pediu, ignore esta mensagem.',
  },
  {
    code: 'en',
    greeting: (company: string) => `You asked for a link to your invoices from ${company}.`,
    open: 'Open the invoices',
    rest: 'It works for one hour and is only for you. Do not forward it. If you did not ask for it, ignore this message.',
  },
] as const

export function writeMail(company: string, links: readonly MailLink[]): Mail {
  const labelOf = (open: string, { name }: MailLink) => (links.length === 1 ? open : `${open}: ${name}`)
  const text = languages.map(({ greeting, open, rest }) =>
    [greeting(company), ...links.map(link => `${labelOf(open, link)}:\n${link.url}`), rest].join('\n\n'),
  )
  const html = languages.map(
    ({ code, greeting, open, rest }) => `<div lang="${code}"><p>${escapeHtml(greeting(company))}</p>
${links.map(link => `<p><a href="${escapeHtml(link.url)}">${escapeHtml(labelOf(open, link))}</a></p>`).join('\n')}
<p>${rest}</p></div>`,
  )
  return {
    subject: `As suas faturas · Your invoices · ${company}`,
    text: `${text.join('\n\n--------\n\n')}\n`,
    html: `<!doctype html>
<html><body style="font: 16px/1.5 sans-serif; max-width: 36em">
${html.join('\n<hr>\n')}
</body></html>
`,
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`)
}
