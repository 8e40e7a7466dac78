/**
 * How an argument names a resource of the service: by its URI, by the path of it, or by a short
 * name, which has the variable segments of the path. `alice/x1` is a registration of the mailbox
 * `alice` where a registration is expected.
 */
import { Schema } from "effect"
import { parseUrl } from "../../../actors/index.ts"

/** The name of an account or of a mailbox; `~` begins the secret part of a mailbox's URI. */
const slug = "[a-z0-9][a-z0-9-]{0,63}"

const mailbox = `${slug}(?:(?:~|%7[Ee])[\\w-]+)?`

const id = "[\\w=-]+(?:(?:~|%7[Ee])[\\w-]+)?"

interface Kind {
  /** What the message for a wrong argument lists. */
  readonly forms: string
  /** The fixed segments of the path, each before a variable one. */
  readonly collections: ReadonlyArray<string>
  /** The variable segments of a short name. */
  readonly segments: ReadonlyArray<string>
}

const kinds = {
  mailbox: {
    forms: "the name or the URI of a mailbox",
    collections: ["/mailboxes/"],
    segments: [mailbox]
  },
  notification: {
    forms: "MAILBOX/ID or the URI of a notification",
    collections: ["/mailboxes/", "/notifications/"],
    segments: [mailbox, id]
  },
  registration: {
    forms: "MAILBOX/ID or the URI of a registration",
    collections: ["/mailboxes/", "/registrations/"],
    segments: [mailbox, id]
  },
  sent: {
    forms: "ID, ACCOUNT/ID or the URI of an outgoing notification",
    collections: ["/outgoing/", "/"],
    segments: [slug, id]
  },
  session: {
    forms: "the id or the URI of a session",
    collections: ["/sessions/"],
    segments: [id]
  },
  query: { forms: "the id or the URI of a query", collections: ["/queries/"], segments: [id] },
  account: {
    forms: "the name or the URI of an account",
    collections: ["/accounts/"],
    segments: [slug]
  },
  token: {
    forms: "the id or the URI of a token",
    collections: ["/accounts/", "/tokens/"],
    segments: [slug, id]
  }
} satisfies Readonly<Record<string, Kind>>

export type ResourceKind = keyof typeof kinds

/** The resource that an argument names. */
export interface NamedResource {
  readonly kind: ResourceKind
  readonly path: string
  /** The variable segments of the path. */
  readonly segments: ReadonlyArray<string>
  /** The origin of the URI; undefined where the argument has none. */
  readonly origin: string | undefined
}

/** The variable segments of a text; undefined if it does not match. */
const segmentsOf = (text: string, pattern: string): ReadonlyArray<string> | undefined =>
  new RegExp(`^${pattern}$`).exec(text)?.slice(1)

const pathOf = ({ collections }: Kind, segments: ReadonlyArray<string>): string =>
  collections.map((collection, at) => collection + segments[at]).join("")

/** The path and the origin of a URI; of a text that begins with `/`, the path alone. */
export const locatorOf = (
  text: string
): { readonly path: string; readonly origin: string | undefined } | undefined => {
  const isPath = text.startsWith("/")
  const url = parseUrl(isPath ? `http://path.invalid${text}` : text)
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined
  return { path: url.pathname, origin: isPath ? undefined : url.origin }
}

/** The resource of one of these kinds that a text names; undefined if it names none. */
export const namedResource = (
  text: string,
  ...expected: ReadonlyArray<ResourceKind>
): NamedResource | undefined => {
  const locator = locatorOf(text)
  for (const kind of expected) {
    const { collections, segments: patterns } = kinds[kind]
    const segments = locator === undefined
      ? segmentsOf(text, patterns.map((pattern) => `(${pattern})`).join("/"))
      : segmentsOf(locator.path, collections.map((one) => `${one}([^/]+)`).join(""))
    if (segments === undefined) continue
    const path = locator?.path ?? pathOf(kinds[kind], segments)
    return { kind, path, segments, origin: locator?.origin }
  }
  return undefined
}

/** What an argument for one of these kinds may be, as a message lists it. */
export const resourceNames = (...expected: ReadonlyArray<ResourceKind>): string =>
  expected.map((kind) => kinds[kind].forms).join(", or ")

/** The name, the path or the URI of a resource whose name is a slug, as it is written. */
const slugText = (kind: "account" | "mailbox", resource: string) =>
  Schema.String.pipe(
    Schema.check(Schema.makeFilter((text: string) =>
      new RegExp(`^${slug}$`).test(namedResource(text, kind)?.segments[0] ?? "") ||
      `Expected the URI of ${resource}, or its name: 1 to 64 of a-z, 0-9 and -, ` +
        "not beginning with -"
    ))
  )

export const AccountText = slugText("account", "an account")

export const MailboxText = slugText("mailbox", "a mailbox")
