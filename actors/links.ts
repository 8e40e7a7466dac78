/** The service's own URIs: actors make them and recognize them. */
import { isActorId } from "../runtime/index.ts"
import { parseUrl } from "./parse-url.ts"

/** A mailbox that a URI of this service names; `secret` is the part after `~`, not yet checked. */
export interface MailboxLink {
  readonly name: string
  readonly secret: string | undefined
}

export interface Links {
  /** Whether a URI lies under a base URL of the service. */
  readonly isOwn: (uri: string) => boolean
  /** The mailbox of an own URI `/mailboxes/<name>[~<secret>]`; undefined for any other URI. */
  readonly mailboxOf: (uri: string) => MailboxLink | undefined
  /** The id of an own URI `/content/<id>`; undefined for any other URI. */
  readonly contentOf: (uri: string) => string | undefined
  readonly mailbox: (name: string) => string
  /** `id` is a `notificationId` of mailbox/log-item.ts. */
  readonly stored: (mailbox: string, id: string) => string
  readonly registrations: (mailbox: string) => string
  readonly outgoing: (account: string, id: string) => string
  /** The mailbox, or one of its representations, as a topic of WebSub. */
  readonly topic: (mailbox: string, format: string | undefined) => string
}

const mailboxPattern = /^\/mailboxes\/([a-z0-9][a-z0-9-]{0,63})(?:~([A-Za-z0-9_-]{1,200}))?$/

const contentPattern = /^\/content\/([A-Za-z0-9_-]{1,200})$/

/**
 * Whether a text may have the URI of a content of this service: a cheap check before `contentOf`,
 * which parses the URI. A URI that spells its path with escapes is not recognized.
 */
export const mayNameContent = (text: string): boolean => text.includes("/content/")

/** A path whose unreserved characters are written as such (RFC 3986 §6.2.2.2). */
const normal = (path: string): string =>
  path.replace(/%[2-7][0-9a-f]/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escape
  })

/** The path of an own URI without query and fragment; undefined for URIs of others. */
const pathOf = (baseUrl: string, uri: string): string | undefined => {
  const href = parseUrl(uri)?.href
  if (!href?.startsWith(`${baseUrl}/`)) return undefined
  return normal(href.slice(baseUrl.length).split(/[?#]/, 1)[0] ?? "")
}

/**
 * Finds texts that may have the host of the base URL: a cheap check before a URI is parsed. A
 * number, a character outside ASCII and an escape may spell a host in another way.
 */
const hostPatternOf = (baseUrl: string): RegExp => {
  const host = parseUrl(baseUrl)?.hostname ?? ""
  if (host === "" || /^[\d.]+$|^\[/.test(host)) return /^/
  return new RegExp(`${host.replaceAll(".", "\\.")}|%|[^\\x20-\\x7e]`, "i")
}

/**
 * The links under a base URL, which is absolute and without a slash at its end. Content also has
 * URIs under `contentBaseUrl`, if there is one: those under the base URL redirect there.
 */
export const linksUnder = (baseUrl: string, contentBaseUrl?: string): Links => {
  const bases = contentBaseUrl === undefined ? [baseUrl] : [baseUrl, contentBaseUrl]
  const origins = bases.map((base) => ({ base, hostPattern: hostPatternOf(base) }))
  return {
    isOwn: (uri) => bases.some((base) => pathOf(base, uri) !== undefined || uri === base),
    mailboxOf: (uri) => {
      const [, name, secret] = mailboxPattern.exec(pathOf(baseUrl, uri) ?? "") ?? []
      return name === undefined ? undefined : { name, secret }
    },
    contentOf: (uri) => {
      for (const { base, hostPattern } of origins) {
        if (!hostPattern.test(uri)) continue
        const id = contentPattern.exec(pathOf(base, uri) ?? "")?.[1]
        if (id !== undefined) return isActorId(id) ? id : undefined
      }
      return undefined
    },
    mailbox: (name) => `${baseUrl}/mailboxes/${name}`,
    stored: (mailbox, id) => `${baseUrl}/mailboxes/${mailbox}/notifications/${id}`,
    registrations: (mailbox) => `${baseUrl}/mailboxes/${mailbox}/registrations`,
    outgoing: (account, id) => `${baseUrl}/outgoing/${account}/${id}`,
    topic: (mailbox, format) => {
      const query = format === undefined ? "" : `?format=${format}`
      return `${baseUrl}/mailboxes/${mailbox}${query}`
    }
  }
}
