/** The documents of push registrations (protocol §1.4). */
import type { RegistrationView as Registered } from "../../../actors/registration/index.ts"
import { liveScriptPath, type PageLink } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isText } from "../../formats/xml/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { collectionHref, type DescribedRegistration,
  type RegistrationRef } from "./registration-access.ts"
import { collectionPage, registrationPage, secretPage } from "./registration-pages.ts"

const timeOf = (atMs: number): string => new Date(atMs).toISOString()

/** Text that may come from another service, as it can be written. */
const printable = (text: string): string => isText(text) ? text : JSON.stringify(text)

const optional = (name: string, value: string | number | undefined): Element | undefined =>
  value === undefined ? undefined : element(name, {}, value)

const optionalTime = (name: string, atMs: number | undefined): Element | undefined =>
  atMs === undefined ? undefined : element(name, {}, timeOf(atMs))

/** The registration document; `secret` only where it is shown for the one time. */
const registrationElement = (
  { href }: RegistrationRef,
  view: Registered,
  secret?: string
): Element =>
  element(
    "registration",
    { href, status: view.status, form: view.form, created: timeOf(view.createdAtMs) },
    element("callback", {}, view.callback),
    optional("secret", secret),
    optional("account", view.account),
    element("cursor", {}, view.cursor),
    optionalTime("lease-until", view.leaseUntilMs),
    element("attempts", {}, view.attempts),
    optionalTime("last", view.lastAtMs),
    optionalTime("next", view.nextAtMs),
    optional("code", view.code),
    optional("problem", view.problem === undefined ? undefined : printable(view.problem)),
    optionalTime("rotated-until", view.rotatedUntilMs)
  )

const linksOf = (place: MailboxRef): ReadonlyArray<PageLink> => [
  { rel: "mailbox", href: place.href },
  { rel: "collection", href: collectionHref(place), title: "All registrations" },
  { rel: "up", href: place.here, title: "The mailbox" }
]

/** One registration as its readers see it. */
export const registrationView = (
  place: MailboxRef,
  registration: RegistrationRef,
  view: Registered
): ResourceView => ({
  title: "A push registration",
  tree: () => registrationElement(registration, view),
  body: () => registrationPage(registration, view),
  links: linksOf(place),
  script: liveScriptPath
})

/** The same with its new secret: the only answer that shows it. */
export const secretView = (
  place: MailboxRef,
  registration: RegistrationRef,
  view: Registered,
  secret: string
): ResourceView => ({
  title: "The secret of the registration",
  tree: () => registrationElement(registration, view, secret),
  body: () => secretPage(registration, view, secret),
  links: linksOf(place)
})

/** The registrations of a mailbox, in the order they came. */
export const collectionView = (
  place: MailboxRef,
  all: ReadonlyArray<DescribedRegistration>
): ResourceView => ({
  title: "Push registrations",
  tree: () =>
    element(
      "registrations",
      { href: collectionHref(place) },
      ...all.map(({ registration, view: { attempts, callback, form, status } }) =>
        element("registration", { href: registration.href, status, form, callback, attempts })
      )
    ),
  body: () => collectionPage(place, all),
  links: [
    { rel: "mailbox", href: place.href },
    { rel: "up", href: place.here, title: "The mailbox" }
  ],
  script: liveScriptPath
})
