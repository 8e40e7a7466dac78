/** What a log keeps of one attempt, and how many attempts it keeps. Pure. */
import { Option, Schema } from "effect"
import { attemptCharsMax, recordedHeaderCharsMax } from "../limits.ts"
import { type DeliveryOutcome, ExchangeRecord, retryAfterMaxMs } from "../outbound/index.ts"
import { Count } from "../schemas.ts"

/** The fields of every attempt. A newer version may have stored words that this one lacks. */
export const attemptFields = {
  exchange: ExchangeRecord,
  /** Why it has failed; left out if it has succeeded. */
  problem: Schema.optionalKey(Schema.String),
  /** What follows the attempt, and why: a word of its kind of actor. */
  follows: Schema.String,
  /** When the next attempt was due then; left out without one. */
  nextAtMs: Schema.optionalKey(Count)
}

/** One attempt. */
export const AttemptRecord = Schema.Struct(attemptFields)

export type AttemptRecord = typeof AttemptRecord.Type

/** Decodes log items; undefined for one that a newer version has stored and this cannot read. */
export const attemptDecoder = <Attempt>(
  schema: Schema.Codec<Attempt, unknown>
): (item: string) => Attempt | undefined => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return (item) => Option.getOrUndefined(decode(item))
}

/** The exchange without the text of the answer. */
export const withoutText = (exchange: ExchangeRecord): ExchangeRecord => {
  const { answer } = exchange
  if (answer?.text === undefined || answer.text === "") return exchange
  return { ...exchange, answer: { ...answer, text: "", isCut: true } }
}

const characters: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: "\"",
  apos: "'"
}

/** A secret, given as XML text, as an answer may repeat it: in plain, XML, JSON or a URI. */
const formsOf = (xmlText: string): ReadonlyArray<string> => {
  const plain = xmlText.replace(/&(\w+);/g, (whole, name: string) => characters[name] ?? whole)
  const json = JSON.stringify(plain).slice(1, -1)
  const forms = new Set([xmlText, plain, json, encodeURIComponent(plain.replace(/\p{Cs}/gu, ""))])
  return [...forms].filter((form) => form !== "").toSorted((a, b) => b.length - a.length)
}

/** The text without the beginning of one of these at its end, where it was cut. */
const withoutBeginning = (text: string, forms: ReadonlyArray<string>): string => {
  for (const form of forms) {
    for (let length = Math.min(form.length - 1, text.length); length > 0; length--) {
      if (text.endsWith(form.slice(0, length))) return text.slice(0, -length)
    }
  }
  return text
}

/**
 * The exchange without a secret that its answer repeats, which is stored encrypted elsewhere. The
 * secret is given as XML text.
 */
export const withoutSecret = (exchange: ExchangeRecord, xmlText: string): ExchangeRecord => {
  const { answer } = exchange
  if (answer === undefined) return exchange
  const forms = formsOf(xmlText)
  const hidden = (text: string, isCut: boolean): string => {
    const without = forms.reduce((rest, form) => rest.replaceAll(form, "…"), text)
    return isCut ? withoutBeginning(without, forms) : without
  }
  const { headers, isCut = false, text } = answer
  return {
    ...exchange,
    answer: {
      ...answer,
      headers: headers.map(([name, value]) =>
        [name, hidden(value, value.length >= recordedHeaderCharsMax)] as const
      ),
      ...text === undefined ? {} : { text: hidden(text, isCut) }
    }
  }
}

/** The log item of an attempt. */
export const encodeAttempt = (attempt: AttemptRecord): string => {
  const text = JSON.stringify(attempt)
  if (text.length <= attemptCharsMax) return text
  // Control characters take six characters each in JSON.
  return JSON.stringify({ ...attempt, exchange: withoutText(attempt.exchange) })
}

/** Why the next attempt is due when it is: by the retry schedule, or by Retry-After. */
export const nextAttempt = (
  outcome: DeliveryOutcome,
  nextAtMs: number,
  nowMs: number
): { readonly follows: "schedule" | "retry-after"; readonly nextAtMs: number } => {
  const { retryAfterMs } = outcome._tag === "RetryableFailure" ? outcome : {}
  const isAsked = retryAfterMs !== undefined &&
    nextAtMs === nowMs + Math.min(retryAfterMs, retryAfterMaxMs)
  return { follows: isAsked ? "retry-after" : "schedule", nextAtMs }
}

/** How many attempts a log keeps, and how many characters of them in all. */
interface AttemptBounds {
  readonly countMax: number
  readonly charsMax: number
}

/** How many of the oldest attempts exceed the bounds; `chars` are their lengths, oldest first. */
export const excessAttempts = (
  chars: ReadonlyArray<number>,
  { charsMax, countMax }: AttemptBounds
): number => {
  let total = chars.reduce((sum, one) => sum + one, 0)
  let excess = 0
  while (chars.length - excess > countMax || total > charsMax) total -= chars[excess++] ?? total
  return excess
}
