/**
 * Structured logs on standard error: one line of JSON each, or text on a terminal. Every line is
 * redacted: `~secret` parts of paths, credentials in fields and URIs, and every field with the
 * name of a secret.
 */
import { Cause, Layer, Logger, type LogLevel, References } from "effect"

const hidden = "<redacted>"

const textCharsMax = 8192

const depthMax = 6

const secretNames =
  /^((proxy-)?authorization|(set-)?cookie|(message-)?password|(admin_?)?token|(hub\.)?secret)$/i

/** The secret after the tilde of a capability URI; identifiers and secrets are base64url. */
const capability = /(?<=[A-Za-z0-9_-])(?:~|%7e)[A-Za-z0-9_-]{8,}/gi

const scheme = /\b(Basic|Bearer)\s+[A-Za-z0-9+/._~=-]+/gi

const assigned =
  /((?:message-password|password|secret|admin_?token|token)"?\s*[:=]\s*"?)[^\s"&,;<>]+/gi

const element = /(<(password|secret|token)\b[^>]*>)[^<]*/gi

const signing = /whsec_[A-Za-z0-9+/=_-]+/g

const userInfo = /(\bhttps?:\/\/)[^\s/@]+@/gi

/** The text without secrets. */
export const redactText = (text: string): string =>
  text.slice(0, textCharsMax)
    .replace(capability, `~${hidden}`)
    .replace(scheme, `$1 ${hidden}`)
    .replace(assigned, `$1${hidden}`)
    .replace(element, `$1${hidden}`)
    .replace(signing, hidden)
    .replace(userInfo, `$1${hidden}@`)

/** A JSON value without secrets, and of limited depth. */
export const redactValue = (value: unknown, depth = 0): unknown => {
  if (typeof value === "string") return redactText(value)
  if (typeof value === "bigint") return String(value)
  if (value instanceof Error) return redactText(value.stack ?? value.message)
  if (typeof value !== "object" || value === null) return value
  if (depth >= depthMax) return "…"
  if (value instanceof Date) return value.toISOString()
  if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`
  if (Array.isArray(value)) return value.map((one) => redactValue(one, depth + 1))
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return redactValue(value.toJSON(), depth + 1)
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      secretNames.test(name) ? hidden : redactValue(one, depth + 1)
    ])
  )
}

interface Entry {
  readonly time: string
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly cause: string | undefined
}

/** Strings of the message are its text; the properties of its objects are fields. */
const entryOf = (options: Logger.Options<unknown>): Entry => {
  const texts: Array<string> = []
  const fields: Record<string, unknown> = {
    ...options.fiber.getRef(References.CurrentLogAnnotations)
  }
  for (const part of Array.isArray(options.message) ? options.message : [options.message]) {
    if (part instanceof Error) texts.push(part.stack ?? part.message)
    else if (typeof part === "object" && part !== null) Object.assign(fields, part)
    else texts.push(String(part))
  }
  for (const [label, startMs] of options.fiber.getRef(References.CurrentLogSpans)) {
    fields[`${label}Ms`] = options.date.getTime() - startMs
  }
  return {
    time: options.date.toISOString(),
    level: options.logLevel.toLowerCase(),
    message: redactText(texts.join(" ")),
    // An object stays an object: redactValue changes only what is inside.
    fields: redactValue(fields) as Readonly<Record<string, unknown>>,
    cause: options.cause.reasons.length === 0 ? undefined : redactText(Cause.pretty(options.cause))
  }
}

/** One line of JSON: `time` (RFC 3339), `level`, `message`, the fields, and `cause` when failed. */
const jsonLine = ({ cause, fields, level, message, time }: Entry): string =>
  JSON.stringify({ time, level, message, ...fields, ...(cause === undefined ? {} : { cause }) })

/**
 * The text with its control characters and line separators as escapes: a message may quote a
 * request, which must not write a line of its own or move a terminal's cursor.
 */
const visible = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(
    /[\0-\x1f\x7f-\x9f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

const fieldText = ([name, value]: readonly [string, unknown]): string =>
  `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`

const textLine = ({ cause, fields, level, message, time }: Entry): string => {
  const fieldTexts = Object.entries(fields).map(fieldText)
  const line = [time.slice(11, 23), level.toUpperCase().padEnd(5), message, ...fieldTexts].join(" ")
  const causeLines = cause === undefined ? [] : cause.split("\n")
  return [visible(line), ...causeLines.map((one) => `  ${visible(one)}`)].join("\n")
}

/** The format that `auto` selects for this process's standard error. */
const formatOf = (format: "auto" | "json" | "text"): "json" | "text" =>
  format !== "auto" ? format : process.stderr.isTTY ? "text" : "json"

const levelOf = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
  none: "None"
} as const satisfies Record<string, LogLevel.LogLevel>

/** Where log lines go: the settings `log.level` and `log.format`. */
export const loggingLayer = (
  settings: {
    readonly logLevel: keyof typeof levelOf
    readonly logFormat: "auto" | "json" | "text"
  },
  write: (line: string) => void = (line) => process.stderr.write(line)
): Layer.Layer<never> => {
  const line = formatOf(settings.logFormat) === "json" ? jsonLine : textLine
  const logger = Logger.make((options) => write(`${line(entryOf(options))}\n`))
  return Layer.merge(
    Logger.layer([logger]),
    Layer.succeed(References.MinimumLogLevel, levelOf[settings.logLevel])
  )
}
