/** Bodies and queries of `application/x-www-form-urlencoded` (WHATWG URL §5), bounded. */
import { formBytesMax, formFieldsMax } from "../limits.ts"
import { failure, type Result, success } from "./xml/index.ts"

/** The fields of a form in their order; names may repeat. */
export class FormFields {
  private readonly fields: ReadonlyArray<readonly [name: string, value: string]>

  constructor(entries: ReadonlyArray<readonly [name: string, value: string]>) {
    this.fields = entries
  }

  /** The first value of a name. */
  get(name: string): string | undefined {
    return this.fields.find(([key]) => key === name)?.[1]
  }

  /** All values of a name. */
  all(name: string): ReadonlyArray<string> {
    return this.fields.filter(([key]) => key === name).map(([, value]) => value)
  }

  has(name: string): boolean {
    return this.fields.some(([key]) => key === name)
  }

  entries(): ReadonlyArray<readonly [name: string, value: string]> {
    return this.fields
  }
}

/** Most texts have nothing to decode, and calling the decoder is slow. */
const decode = (text: string): string =>
  /[%+]/.test(text) ? decodeURIComponent(text.replace(/\+/g, " ")) : text

/**
 * Parses a query string (without `?`) or a form. Unlike the WHATWG parser, escapes that are not
 * valid UTF-8 are rejected instead of replaced. Fails with the reason as text.
 */
export const parseForm = (text: string): Result<FormFields, string> => {
  if (text.length > formBytesMax) {
    return failure(`the form exceeds ${formBytesMax} bytes`)
  }
  const entries: Array<readonly [string, string]> = []
  for (const pair of text.split("&", formFieldsMax + 1)) {
    if (pair === "") continue
    if (entries.length === formFieldsMax) {
      return failure(`there are more than ${formFieldsMax} fields`)
    }
    const equals = pair.indexOf("=")
    const name = equals === -1 ? pair : pair.slice(0, equals)
    const value = equals === -1 ? "" : pair.slice(equals + 1)
    try {
      entries.push([decode(name), decode(value)])
    } catch {
      return failure("a field is not valid percent-encoded UTF-8")
    }
  }
  return success(new FormFields(entries))
}

const decoder = new TextDecoder("utf-8", { fatal: true })

/** Parses a form of a request body. */
export const parseFormBody = (bytes: Uint8Array): Result<FormFields, string> => {
  try {
    return parseForm(decoder.decode(bytes))
  } catch {
    return failure("the form is not valid UTF-8")
  }
}
