/** Formats amounts, days and moments for a language. */
import { decimalsOf } from '../domain/money.ts'
import type { Language } from './words.ts'

export type Format = ReturnType<typeof createFormat>

export function createFormat(language: Language) {
  const locale = language === 'pt' ? 'pt-PT' : 'en-GB'
  const kept = new Map<string, Intl.NumberFormat>()
  const money = (currency: string) => {
    const digits = decimalsOf(currency)
    const made =
      kept.get(currency) ??
      new Intl.NumberFormat(locale, {
        style: 'currency',
        currency: currency.toUpperCase(),
        useGrouping: 'always',
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      })
    kept.set(currency, made)
    return made
  }
  const brief = new Intl.NumberFormat(locale, { notation: 'compact', maximumSignificantDigits: 2 })
  const number = new Intl.NumberFormat(locale, { useGrouping: 'always' })
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 2 })
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' })
  const shortDay = new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: language === 'pt' ? '2-digit' : 'short',
    timeZone: 'UTC',
  })
  const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
  const months = {
    long: new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric', timeZone: 'UTC' }),
    short: new Intl.DateTimeFormat(locale, { month: 'short', timeZone: 'UTC' }),
  }
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })

  return {
    amount: (cents: number, currency: string) => money(currency).format(toMajor(cents, currency)),
    /** Formats an amount for a bar's label, short and without the currency. */
    brief: (cents: number, currency: string) => brief.format(toMajor(cents, currency)),
    percent: (value: number) => percent.format(value / 100),
    count: (value: number) => number.format(value),
    /** Formats a day in UTC. The filters use days in UTC as well. */
    day: (text: string) => day.format(new Date(text)),
    /** Formats a due day. The current year is left out. */
    dueDay(text: string) {
      const isThisYear = text.startsWith(`${new Date().getUTCFullYear()}-`)
      return (isThisYear ? shortDay : day).format(new Date(text))
    },
    month: (month: string, style: keyof typeof months = 'long') =>
      months[style].format(new Date(`${month}-01`)),
    moment: (value: Date) => moment.format(value),
    ago(value: Date, now: number) {
      const seconds = Math.min(0, Math.round((value.getTime() - now) / 1000))
      if (seconds > -60) return relative.format(0, 'second')
      if (seconds > -3600) return relative.format(Math.trunc(seconds / 60), 'minute')
      if (seconds > -86_400) return relative.format(Math.trunc(seconds / 3600), 'hour')
      return relative.format(Math.trunc(seconds / 86_400), 'day')
    },
  }
}

const toMajor = (cents: number, currency: string) => cents / 10 ** decimalsOf(currency)
