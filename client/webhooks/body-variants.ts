/**
 * What a body was before it was changed on its way: if a signature matches one of these, the change
 * is known. Pure.
 */
import { withoutEnd } from "./request-text.ts"

/** A change of a body. */
export interface BodyChange {
  /** What the sender's body is to the given one, in words that follow "the sender's body". */
  readonly change: string
  /** Whether only line ends differ, which forms and clipboards do not keep. */
  readonly isOfLines?: boolean
  readonly advice: string
  /** The sender's body of the given one; undefined if this change is impossible. */
  readonly undo: (bytes: Uint8Array) => Uint8Array | undefined
}

const encoder = new TextEncoder()

const utf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** A change of the text; impossible if the bytes are no text, or if it leaves the text as it is. */
const ofText =
  (undo: (text: string) => string | undefined) => (bytes: Uint8Array): Uint8Array | undefined => {
    const text = utf8(bytes)
    const undone = text === undefined ? undefined : undo(text)
    return undone === undefined || undone === text ? undefined : encoder.encode(undone)
  }

/** A change of the value of JSON; impossible for another text, or one that is nested too deep. */
const ofJson = (undo: (value: unknown) => string | undefined) =>
  ofText((text) => {
    try {
      return undo(JSON.parse(text))
    } catch {
      return undefined
    }
  })

/** The bytes of a text whose characters are bytes; undefined if one is larger. */
const latin1Bytes = (text: string): Uint8Array | undefined => {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0xff) return undefined
    bytes[at] = code
  }
  return bytes
}

/** The UTF-8 of a text in Latin-1. */
const fromLatin1 = (bytes: Uint8Array): Uint8Array => {
  const longer = new Uint8Array(2 * bytes.length)
  let length = 0
  for (const code of bytes) {
    if (code >= 0x80) longer[length++] = 0xc0 | code >> 6
    longer[length++] = code < 0x80 ? code : 0x80 | code & 0x3f
  }
  return longer.subarray(0, length)
}

const raw = "verify the bytes as they arrive, before anything parses, formats or decodes them"

const newlines = "read the body without a program that adds or removes newlines, such as echo, an "
  + "editor or a template"

const withLf = (text: string): string => text.replaceAll("\r\n", "\n")

/** The changes, the most probable first. */
export const bodyChanges: ReadonlyArray<BodyChange> = [
  {
    change: "has no newline at its end",
    isOfLines: true,
    advice: newlines,
    undo: ofText((text) => withoutEnd(text, "\r\n"))
  },
  {
    change: "ends with a newline",
    isOfLines: true,
    advice: newlines,
    undo: ofText((text) => text.endsWith("\n") ? undefined : `${text}\n`)
  },
  {
    change: "has line feeds where this one has carriage returns and line feeds",
    isOfLines: true,
    advice: newlines,
    undo: ofText(withLf)
  },
  {
    change:
      "has line feeds where this one has carriage returns and line feeds, and none at its end",
    isOfLines: true,
    advice: newlines,
    undo: ofText((text) => withoutEnd(withLf(text), "\r\n"))
  },
  {
    change: "has carriage returns and line feeds where this one has line feeds",
    isOfLines: true,
    advice: newlines,
    undo: ofText((text) => withLf(text).replaceAll("\n", "\r\n"))
  },
  {
    change: "has no byte order mark",
    advice: raw,
    undo: ofText((text) => text.replace(/^\ufeff/, ""))
  },
  {
    change: "has no blanks around it",
    advice: raw,
    undo: ofText((text) => text.trim())
  },
  {
    change: "is JSON without blanks and line breaks: this one was parsed and written again",
    advice: raw,
    undo: ofJson((value) => JSON.stringify(value))
  },
  {
    change: "is the text that this one has as a string of JSON, as some logs print it",
    advice: "take the body from a log that does not quote it, or decode the string first",
    undo: ofJson((value) => typeof value === "string" ? value : undefined)
  },
  {
    change: "is XML without blanks between its elements: this one was parsed and written again",
    advice: raw,
    undo: ofText((text) =>
      /^\s*</.test(text)
        ? text.trim().replace(/>\s+</g, "><").replace(/^(<\?xml[^>]*\?>)/, "$1\n")
        : undefined
    )
  },
  {
    change: "begins with an XML declaration, which this one lacks: it was parsed and written again",
    advice: raw,
    undo: ofText((text) =>
      /^\s*<(?!\?)/.test(text)
        ? `<?xml version="1.0" encoding="UTF-8"?>\n${text.trim().replace(/>\s+</g, "><")}`
        : undefined
    )
  },
  {
    change: "is UTF-8, and this one was decoded as Latin-1",
    advice: `decode the body as UTF-8, and ${raw}`,
    undo: (bytes) => {
      const text = utf8(bytes)
      // ASCII is the same in both.
      return text === undefined || /^[\0-\x7f]*$/.test(text) ? undefined : latin1Bytes(text)
    }
  },
  {
    change: "is UTF-8, and this one was encoded as Latin-1",
    advice: `encode the body as UTF-8, and ${raw}`,
    undo: (bytes) => utf8(bytes) === undefined ? fromLatin1(bytes) : undefined
  },
  {
    change: "is the decoded base64 of this one, as a gateway of functions encodes it",
    advice: "decode the base64 first: such gateways say in isBase64Encoded that they encoded it",
    undo: (bytes) => {
      const text = utf8(bytes)?.trim() ?? ""
      if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
      return latin1Bytes(atob(text))
    }
  }
]
