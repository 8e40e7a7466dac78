/**
 * The documents of follow-ups: each recipient gets the URI under which it knows the earlier one.
 * A stored fragment begins with the known elements of its item, see `storedFragment`.
 */
import { parseUrl } from "../parse-url.ts"
import { sealedParts, withSealedPassword } from "../sealed-fragment.ts"
import { emptyUrl } from "./follow-ups.ts"

const urlEnd = "</url>"

const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")

/** A URI as it is written into a document; undefined if the text is none of http. */
export const writableUri = (text: string): string | undefined => {
  const url = parseUrl(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url.href : undefined
}

/**
 * A stored fragment that names the notification that it replaces. A withdrawal also has that URI as
 * its `url`, since nothing else is to be read.
 */
export const withReplaces = (stored: string, uri: string, isWithdrawal: boolean): string => {
  const name = escaped(uri)
  const replaces = `<replaces>${name}</replaces>`
  if (isWithdrawal) return stored.replace(emptyUrl, () => `<url>${name}</url>${replaces}`)
  const parts = sealedParts(stored)
  const fragment = parts?.fragment ?? stored
  const end = fragment.indexOf(urlEnd)
  if (end < 0) return stored
  const at = end + urlEnd.length
  const whole = fragment.slice(0, at) + replaces + fragment.slice(at)
  // The password comes after the URL.
  return parts === undefined
    ? whole
    : withSealedPassword(whole, parts.position + replaces.length, parts.sealed)
}
