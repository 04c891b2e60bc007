/** Texts about access: sign-in by e-mail, and a host page that gives no token. */
import type { Texts } from '../domain/invoice-words.ts'

export const accessTexts = {
  email: ['O seu e-mail', 'Your e-mail address'],
  emailHint: ['O endereço que recebe as suas faturas.', 'The address that your invoices are sent to.'],
  emailLead: ['Sem palavra-passe: recebe uma ligação por e-mail.', 'No password: a link comes by e-mail.'],
  openLinkLead: [
    'Abra a ligação que recebeu: na aplicação ou na mensagem em que estava.',
    'Open the link that you were given: in the app or the message that it stood in.',
  ],
  newLinkLead: [
    'As ligações são válidas por tempo limitado. Enviamos-lhe outra por e-mail.',
    'Links are good for a limited time. We send you another by e-mail.',
  ],
  sendLink: ['Enviar ligação', 'Send a link'],
  linkSent: [
    'Se este for o e-mail de um cliente, a ligação vai a caminho. É válida durante uma hora.',
    'If this is a customer’s address, a link is on its way. It is good for an hour.',
  ],
  linkLimited: [
    'Foram pedidas demasiadas ligações. Tente de novo dentro de uma hora.',
    'Too many links were asked for. Try again in an hour.',
  ],
  linkFailed: [
    'Não foi possível pedir a ligação. Tente de novo daqui a pouco.',
    'The link could not be asked for. Try again in a while.',
  ],
  wrongEmail: [
    'Isto não é um endereço de e-mail. Um exemplo: ana@empresa.pt',
    'This is not an e-mail address. An example: ana@company.com',
  ],
  noToken: ['Este site não abriu as suas faturas', 'This site did not open your invoices'],
  noTokenLead: [
    'Não obteve o acesso para as mostrar. Tente de novo ou volte a entrar no site. Se continuar, avise quem o gere.',
    'It got no access to show them. Try again, or sign in to the site again. If that does not help, tell whoever runs it.',
  ],
} satisfies Texts
