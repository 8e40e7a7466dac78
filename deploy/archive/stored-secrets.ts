/**
 * The encrypted secrets in the parts of a store: under which keys they are; and the parts with
 * their secrets encrypted under the current key, or without those that no key opens.
 */
import { fragmentStart, idempotencyKind, type Keyring, lostWebhookSecret, mailboxKind,
  messagePasswordOf, notificationKind, registrationKind, sealedParts, type SealedPlace,
  sealingKeyId, signingSecretOf, withoutPassword, withSealedPassword } from "../../actors/index.ts"
import { type ActorPart, type Address, decodeStoredState, encodeStoredState, type ItemsPart,
  type LogItem, type RecordPart } from "../../runtime/index.ts"
import { isServiceKey, serviceKeyPlace } from "../secret-key/index.ts"
import { BlobRemoved } from "./format.ts"
import type { ArchivePart, BlobPart, Counter } from "./parts.ts"

type PlainPart = ItemsPart | ActorPart | RecordPart

/** How many secrets of each kind no key opens. */
export interface UnopenedSecrets {
  serviceKeys: number
  messagePasswords: number
  registrations: number
  /** Secrets of mailboxes, by which webhooks are signed. */
  webhooks: number
  /** Answers to requests with an Idempotency-Key, which only the service's key opens. */
  answers: number
}

/** The text before the stored fragment of an item; undefined for an item without a fragment. */
const fragmentAt = ({ kind }: Address, { value }: LogItem): number | undefined => {
  if (kind === mailboxKind) return fragmentStart(value)
  // The other items are the states of recipients, as JSON.
  return kind === notificationKind && value.startsWith("<") ? value.indexOf(">") + 1 : undefined
}

const sealedInState = /"(s2\.[A-Za-z0-9_-]{8}\.[A-Za-z0-9_-]+)"/g

/** Suspends a registration whose signing secrets are lost: it sends nothing unsigned. */
const suspended = (text: string): string => {
  // The state of a registration is an object, as its behavior wrote it.
  const state = JSON.parse(text) as Record<string, unknown>
  const { intent: _, ...rest } = state
  return JSON.stringify({
    ...rest,
    secrets: [],
    status: "suspended",
    problem: rest["form"] === "webpush"
      ? "the keys of the browser were not restored: unsubscribe it, and subscribe it again"
      : "its signing secret was not restored: rotate the secret, or subscribe again"
  })
}

/** The secrets of a store that is read. It counts them by key. */
export class StoredSecrets {
  /** How many secrets are under each key, by its id. */
  readonly byKey = new Map<string, number>()
  readonly unopened: UnopenedSecrets = {
    serviceKeys: 0,
    messagePasswords: 0,
    registrations: 0,
    webhooks: 0,
    answers: 0
  }
  private readonly keyring: Keyring | undefined
  private readonly leavesOut: boolean

  /** Without a keyring no secret opens; `leavesOut`: parts are without what no key opens. */
  constructor(keyring: Keyring | undefined, leavesOut = false) {
    this.keyring = keyring
    this.leavesOut = leavesOut
  }

  /** Whether a key opens each secret that was read. */
  get isWhole(): boolean {
    return Object.values(this.unopened).every((count) => count === 0)
  }

  /** The ids of the keys that the keyring lacks. */
  get missingKeys(): ReadonlyArray<string> {
    const own = this.keyring?.ids ?? []
    return [...this.byKey.keys()].filter((id) => !own.includes(id))
  }

  /** The secret under the current key; undefined if no key opens it. */
  private change(place: SealedPlace, sealed: string): string | undefined {
    const id = sealingKeyId(sealed) ?? "unknown"
    this.byKey.set(id, (this.byKey.get(id) ?? 0) + 1)
    const text = this.keyring?.open(place, sealed)
    if (text === undefined || this.keyring === undefined) return undefined
    return id === this.keyring.currentId ? sealed : this.keyring.seal(place, text)
  }

  private changeItem(address: Address, item: LogItem): LogItem {
    const start = fragmentAt(address, item)
    const parts = start === undefined ? undefined : sealedParts(item.value.slice(start))
    if (start === undefined || parts === undefined) return item
    const sealed = this.change(messagePasswordOf(address), parts.sealed)
    if (sealed === parts.sealed) return item
    if (sealed === undefined) this.unopened.messagePasswords++
    if (sealed === undefined && !this.leavesOut) return item
    const before = item.value.slice(0, start)
    const after = sealed === undefined
      ? withoutPassword(parts)
      : withSealedPassword(parts.fragment, parts.position, sealed)
    return { n: item.n, value: before + after }
  }

  private changeMailbox(address: Address, stored: string): string {
    if (!stored.includes("\"webhookSecret\":\"s2.")) return stored
    const { format, text } = decodeStoredState(stored)
    // The state of a mailbox is an object, as its behavior wrote it.
    const state = JSON.parse(text) as { readonly webhookSecret?: unknown }
    const sealed = state.webhookSecret
    // A title may have any text.
    if (typeof sealed !== "string" || sealingKeyId(sealed) === undefined) return stored
    const next = this.change(signingSecretOf(address), sealed)
    if (next === undefined) this.unopened.webhooks++
    if (next === undefined && !this.leavesOut) return stored
    const changed = JSON.stringify({ ...state, webhookSecret: next ?? lostWebhookSecret })
    return encodeStoredState({ format, text: changed })
  }

  private changeState(address: Address, stored: string): string {
    const { format, text } = decodeStoredState(stored)
    let isLost = false
    const changed = text.replace(sealedInState, (whole, sealed: string) => {
      const next = this.change(signingSecretOf(address), sealed)
      if (next === undefined) isLost = true
      return next === undefined ? whole : JSON.stringify(next)
    })
    if (isLost) this.unopened.registrations++
    if (!isLost || !this.leavesOut) return encodeStoredState({ format, text: changed })
    return encodeStoredState({ format, text: suspended(text) })
  }

  /** The part as it is to be stored; undefined if it is left out. */
  changed(part: PlainPart): PlainPart | undefined {
    if (part._tag === "Record") {
      if (!isServiceKey(part)) return part
      const value = this.change(serviceKeyPlace, part.value)
      if (value !== undefined) return { ...part, value }
      this.unopened.serviceKeys++
      return this.leavesOut ? undefined : part
    }
    const { address, items } = part
    if (address.kind === idempotencyKind && this.leavesOut) {
      if (part._tag === "Actor") this.unopened.answers++
      return undefined
    }
    const changedItems = items.map((item) => this.changeItem(address, item))
    if (part._tag === "Items") return { ...part, items: changedItems }
    const { state } = part
    if (state === undefined) return { ...part, items: changedItems }
    if (address.kind === registrationKind) {
      return { ...part, items: changedItems, state: this.changeState(address, state) }
    }
    return address.kind === mailboxKind
      ? { ...part, items: changedItems, state: this.changeMailbox(address, state) }
      : { ...part, items: changedItems }
  }
}

/** A blob that notes whether it was removed while it was read. */
const watched = (part: BlobPart, onRemoved: () => void): BlobPart => ({
  ...part,
  bytes: (async function*() {
    try {
      yield* part.bytes
    } catch (error) {
      if (error instanceof BlobRemoved) onRemoved()
      throw error
    }
  })()
})

/** The parts with their secrets changed; `counter` counts them. */
export async function* changedParts(
  parts: AsyncIterable<ArchivePart>,
  secrets: StoredSecrets,
  counter: Counter
): AsyncGenerator<ArchivePart> {
  for await (const part of parts) {
    if (part._tag === "Blob") {
      let isRemoved = false
      yield watched(part, () => {
        isRemoved = true
      })
      if (!isRemoved) counter.add(part)
      continue
    }
    const changed = secrets.changed(part)
    if (changed === undefined) continue
    counter.add(changed)
    yield changed
  }
}
