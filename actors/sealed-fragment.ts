/**
 * The message password in a stored fragment of a notification. A fragment with a password is stored
 * as a line with the encrypted password and its position, before the fragment without it:
 * `~<position, base 36> <sealed>\n<item>…<password></password>…</item>`. Fragments without a
 * password are stored as readers get them, so that a listing joins them unread.
 */
import type { Address, LogItem } from "../runtime/index.ts"
import { type Keyring, messagePasswordOf, type SealedPlace } from "./keyring.ts"

/** Encrypts a password, as XML text, for the record that will have it. */
export type SealPassword = (text: string) => string

/** No fragment begins with it: a fragment begins with `<`. */
const mark = "~"

const markCode = mark.charCodeAt(0)

const emptyElement = /<password\b[^<>]*>$/

const closingTag = "</password>"

/** Encrypts passwords in the fragments of an actor: a mailbox, or an outgoing notification. */
export const sealPasswordFor = (keyring: Keyring, owner: Address): SealPassword => (text) =>
  keyring.seal(messagePasswordOf(owner), text)

/** The stored form of a fragment whose password, `sealed`, belongs at `position`. */
export const withSealedPassword = (fragment: string, position: number, sealed: string): string =>
  `${mark}${position.toString(36)} ${sealed}\n${fragment}`

interface SealedFragment {
  readonly position: number
  readonly sealed: string
  readonly fragment: string
}

/** The parts of a stored fragment; undefined for one without an encrypted password. */
export const sealedParts = (stored: string): SealedFragment | undefined => {
  if (stored.charCodeAt(0) !== markCode) return undefined
  const [space, end] = [stored.indexOf(" "), stored.indexOf("\n")]
  return {
    position: Number.parseInt(stored.slice(1, space), 36),
    sealed: stored.slice(space + 1, end),
    fragment: stored.slice(end + 1)
  }
}

/** The fragment without the element of its password. */
export const withoutPassword = ({ fragment, position }: SealedFragment): string =>
  fragment.slice(0, position).replace(emptyElement, "") +
  fragment.slice(position + closingTag.length)

const wholeAt = (keyring: Keyring, place: SealedPlace, stored: string): string | undefined => {
  const parts = sealedParts(stored)
  if (parts === undefined) return stored
  const text = keyring.open(place, parts.sealed)
  const { fragment, position } = parts
  return text === undefined
    ? undefined
    : fragment.slice(0, position) + text + fragment.slice(position)
}

/** The fragment with its password; undefined if the key of the password is missing. */
export const wholeFragment = (
  keyring: Keyring,
  owner: Address,
  stored: string
): string | undefined => wholeAt(keyring, messagePasswordOf(owner), stored)

/** The password of a fragment, as XML text; undefined without one, or without its key. */
export const passwordIn = (
  keyring: Keyring,
  owner: Address,
  stored: string
): string | undefined => {
  const parts = sealedParts(stored)
  return parts && keyring.open(messagePasswordOf(owner), parts.sealed)
}

const openAt = (keyring: Keyring, place: SealedPlace, stored: string): string => {
  const whole = wholeAt(keyring, place, stored)
  if (whole !== undefined) return whole
  const parts = sealedParts(stored)
  return parts === undefined ? stored : withoutPassword(parts)
}

/** The fragment as readers get it; without the password if its key is missing. */
export const openFragment = (keyring: Keyring, owner: Address, stored: string): string =>
  openAt(keyring, messagePasswordOf(owner), stored)

/**
 * A stored fragment for another actor: its password is encrypted for that one. Undefined if the key
 * of the password is missing: without it the other actor would never have the password.
 */
export const resealFragment = (
  keyring: Keyring,
  from: Address,
  to: Address,
  stored: string
): string | undefined => {
  const parts = sealedParts(stored)
  if (parts === undefined) return stored
  const text = keyring.open(messagePasswordOf(from), parts.sealed)
  return text === undefined
    ? undefined
    : withSealedPassword(parts.fragment, parts.position, keyring.seal(messagePasswordOf(to), text))
}

/** Where the stored fragment begins in the value of a mailbox's log item. */
export const fragmentStart = (value: string): number => value.indexOf("\n") + 1

/** Log items of a mailbox with their fragments as readers get them. */
export const openItems = (
  keyring: Keyring,
  mailbox: Address,
  items: ReadonlyArray<LogItem>
): ReadonlyArray<LogItem> => {
  let place: SealedPlace | undefined
  return items.map((item) => {
    const { n, value } = item
    const start = fragmentStart(value)
    if (value.charCodeAt(start) !== markCode) return item
    place ??= messagePasswordOf(mailbox)
    return { n, value: value.slice(0, start) + openAt(keyring, place, value.slice(start)) }
  })
}
