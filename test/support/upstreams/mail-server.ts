/** A real SMTP server: what it receives, by the mail. */
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { SMTPServer } from 'smtp-server'

export interface Received {
  from: string
  to: string[]
  subject: string
  text: string
  html: string
}

export interface MailServer {
  url: string
  mails: Received[]
  /** Resolves with the mail of this number, once it is there. */
  waitFor(count: number): Promise<Received>
  /** Refuses every mail from now on. */
  refuse: boolean
}

export async function startMailServer(t: Pick<TestContext, 'after'>): Promise<MailServer> {
  const waiting = new Set<() => void>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, { envelope: { mailFrom, rcptTo } }, done) {
      const parts: Buffer[] = []
      stream.on('data', part => parts.push(part))
      stream.on('end', () => {
        if (mail.refuse)
          return done(new Error(`no mail today to ${rcptTo.map(({ address }) => `<${address}>`).join()}`))
        const source = Buffer.concat(parts).toString('latin1')
        const from = mailFrom === false ? '' : mailFrom.address
        mail.mails.push({ from, to: rcptTo.map(({ address }) => address), ...readMail(source) })
        done()
        for (const wake of waiting) wake()
      })
    },
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise<void>(resolve => server.close(() => resolve())))
  const mail: MailServer = {
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    mails: [],
    refuse: false,
    async waitFor(count) {
      while (mail.mails.length < count) {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.add(resolve)
        await promise
        waiting.delete(resolve)
      }
      return mail.mails[count - 1] as Received
    },
  }
  return mail
}

/** Of a message with two forms of its text. */
function readMail(source: string): Pick<Received, 'subject' | 'text' | 'html'> {
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(source) ?? []
  const [head = '', text = '', html = ''] = source.split(`--${boundary}`)
  const [, subject = ''] = /^Subject: (.*(?:\r\n[ \t].*)*)/m.exec(head) ?? []
  return { subject: decodeWords(subject), text: decodePart(text), html: decodePart(html) }
}

function decodePart(part: string): string {
  const [head = '', ...body] = part.split('\r\n\r\n')
  const content = body.join('\r\n\r\n')
  if (/base64/i.test(head)) return Buffer.from(content, 'base64').toString()
  const isQuoted = /quoted-printable/i.test(head)
  return (isQuoted ? decodeQuoted(content.replace(/=\r\n/g, '')) : content).replaceAll('\r\n', '\n')
}

const decodeQuoted = (text: string) =>
  Buffer.from(
    text.replace(/=([\dA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()

const decodeWords = (text: string) =>
  text
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([qb])\?(.*?)\?=/gi, (_, kind, word) =>
      kind.toLowerCase() === 'b'
        ? Buffer.from(word, 'base64').toString()
        : decodeQuoted(word.replaceAll('_', ' ')),
    )
