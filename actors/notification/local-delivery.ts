/** Local delivery: to a mailbox of this service, without HTTP (protocol §1.3). */
import { Effect } from "effect"
import { type Address, address, type AskFailure, isRefusal, type Peers, type Refusal,
  type StorageFailure } from "../../runtime/index.ts"
import { askContent } from "../content/index.ts"
import type { Keyring } from "../keyring.ts"
import { type Links, mayNameContent } from "../links.ts"
import { askMailbox, decodeItem, isRemoval, localDeliveryIdRandom, mailboxKind, type MailboxMessage,
  notificationId, parseNotificationId, partChars, type Removal } from "../mailbox/index.ts"
import type { DeliveryOutcome } from "../outbound/index.ts"
import { resealFragment } from "../sealed-fragment.ts"
import { sha256 } from "../secret-hash.ts"
import { editionName, withReplaces } from "./follow-ups.ts"
import type { RelayFollowUp } from "./protocol.ts"

/** A notification and one of its recipients. */
export interface LocalDelivery {
  /** The outgoing notification. */
  readonly from: Address
  /** The recipient: a URI of this service. */
  readonly to: string
  /** The sender's account. */
  readonly account: string
  /** As the outgoing notification has it stored. */
  readonly fragment: string
  /** What this is a follow-up of; undefined for the notification itself. */
  readonly followUp?: RelayFollowUp | undefined
}

/** What local delivery needs of the dependencies of a relay. */
interface DeliveryDependencies {
  readonly links: Links
  readonly keyring: Keyring
  readonly documents: {
    readonly pointerOf: (fragment: string) => { readonly url: string } | undefined
  }
}

/** A name derived from a notification and its recipient: the same in every attempt; base64url. */
export const derivedName = (purpose: string, id: string, to: string): string =>
  sha256(`${purpose}\n${id}\n${to}`)

const permanentFailure = (code: number, problem: string): DeliveryOutcome => ({
  _tag: "PermanentFailure",
  code,
  problem
})

/** The operator can put the key back. Without its password the message would be lost. */
export const noPasswordKey: DeliveryOutcome = {
  _tag: "RetryableFailure",
  problem: "the key of the message password is missing at this service"
}

const noMailbox = permanentFailure(404, "there is no such mailbox")

const outcomeOf = ({ reason }: Refusal): DeliveryOutcome => {
  switch (reason) {
    case "NotFound":
      return noMailbox
    case "Gone":
      return permanentFailure(410, "the mailbox was deleted")
    case "Unauthenticated":
      return permanentFailure(401, "the mailbox accepts notifications of accounts only")
    case "Blocked":
      return permanentFailure(403, "the owner of the mailbox has blocked the sender")
    case "Forbidden":
      return permanentFailure(403, "the mailbox does not accept this")
    case "Full":
      return { _tag: "RetryableFailure", code: 507, problem: "the mailbox is full" }
    default:
      return { _tag: "RetryableFailure", code: 503, problem: "the mailbox is busy" }
  }
}

/** Content that expires notes the notification before it is deposited; see content/lifetime.ts. */
const noteLink = Effect.fnUntraced(function*(
  peers: Peers,
  { documents, links }: DeliveryDependencies,
  fragment: string,
  mailbox: string,
  idRandom: string
) {
  if (!mayNameContent(fragment)) return
  const id = links.contentOf(documents.pointerOf(fragment)?.url ?? "")
  // A refusal means that the content is gone: the notification is delivered nevertheless.
  if (id === undefined) return
  const described = yield* askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  // The mailbox will refuse the deposit, too.
  if (isRefusal(described) || described._tag !== "Described") return
  const { head } = described.view
  yield* askContent(peers, id, { _tag: "Link", mailbox, idRandom, afterN: head })
})

/** What a mailbox knows an edition by: the same in every attempt, so that it deduplicates. */
interface DeliveryNames {
  readonly digest: string
  readonly idRandom: string
}

const namesOf = (id: string, to: string, edition: number): DeliveryNames => {
  const name = editionName(id, edition)
  return {
    digest: derivedName("digest", name, to).slice(0, partChars),
    idRandom: localDeliveryIdRandom(derivedName("item", name, to))
  }
}

/** The notification of this service that a Location names, if it is one of these editions. */
const locatedAt = (
  links: Links,
  mailbox: string,
  location: string | undefined,
  earlier: ReadonlyArray<DeliveryNames>
): Removal | undefined => {
  const prefix = links.stored(mailbox, "")
  if (location?.startsWith(prefix) !== true) return undefined
  const found = parseNotificationId(location.slice(prefix.length))
  // Another service may have returned any Location.
  return earlier.some(({ idRandom }) => idRandom === found?.idRandom) ? found : undefined
}

/** Whether the mailbox still has the notification, by both parts of its id. */
const isStored = (
  peers: Peers,
  mailbox: Address,
  { idRandom, n }: Removal
): Effect.Effect<boolean, StorageFailure> =>
  Effect.map(
    peers.read(mailbox, n, 1),
    ([item]) =>
      item?.n === n && !isRemoval(item.value) && decodeItem(item.value).idRandom === idRandom
  )

/** The mailbox first says where the earlier edition is, and then replaces it. */
const replaceAsksMax = 3

/**
 * Puts a follow-up into a mailbox, in place of the earlier edition that it has. If a reader or the
 * retention has removed that one, it stays removed, and the sender learns nothing of it.
 */
const replace = Effect.fnUntraced(function*(
  peers: Peers,
  deps: DeliveryDependencies,
  { account, fragment: stored, from, to }: LocalDelivery,
  { edition, isWithdrawal, location }: RelayFollowUp,
  name: string
): Effect.fn.Return<DeliveryOutcome, AskFailure | StorageFailure> {
  const { keyring, links } = deps
  const mailbox = address(mailboxKind, name)
  const earlier = Array.from({ length: edition }, (_, at) => namesOf(from.id, to, edition - 1 - at))
  const names = namesOf(from.id, to, edition)
  const uriOf = ({ idRandom, n }: Removal): string =>
    links.stored(name, notificationId(n, idRandom))
  const delivered = (one: Removal): DeliveryOutcome => ({
    _tag: "Delivered",
    code: 202,
    location: uriOf(one)
  })
  if (!isWithdrawal) yield* noteLink(peers, deps, stored, name, names.idRandom)
  let replaced = locatedAt(links, name, location, earlier)
  for (let asks = 0; asks < replaceAsksMax; asks++) {
    // It may be missing because an attempt whose reply is lost has replaced it.
    const isMissing = replaced !== undefined && !(yield* isStored(peers, mailbox, replaced))
    const named = replaced === undefined || isMissing
      ? stored
      : withReplaces(stored, uriOf(replaced), isWithdrawal)
    const fragment = resealFragment(keyring, from, mailbox, named)
    if (fragment === undefined) return noPasswordKey
    const message: MailboxMessage = {
      _tag: "Replace",
      ...names,
      fragment,
      account,
      isWithdrawal,
      earlier,
      ...replaced === undefined ? {} : { replaced, isMissing }
    }
    const reply = yield* askMailbox(peers, name, message)
    if (isRefusal(reply)) return outcomeOf(reply)
    if (reply._tag === "Done") return { _tag: "Delivered", code: 202 }
    if (reply._tag === "Deposited") {
      return delivered({ n: reply.n, idRandom: reply.idRandom ?? names.idRandom })
    }
    if (reply._tag !== "Located") throw new Error(`a mailbox answered ${reply._tag}`)
    replaced = { n: reply.n, idRandom: reply.idRandom }
  }
  return { _tag: "RetryableFailure", code: 503, problem: "the mailbox is busy" }
})

const deposit = Effect.fnUntraced(function*(
  peers: Peers,
  deps: DeliveryDependencies,
  delivery: LocalDelivery
) {
  const { account, followUp, fragment: stored, from, to } = delivery
  const { keyring, links } = deps
  const { id } = from
  const mailbox = links.mailboxOf(to)
  if (mailbox === undefined) return permanentFailure(405, "this is not a mailbox of this service")
  const { name, secret } = mailbox
  if (secret !== undefined) {
    const reader = { secretHash: sha256(secret) }
    const reply = yield* askMailbox(peers, name, { _tag: "List", reader })
    // A wrong secret is indistinguishable from a missing mailbox.
    if (isRefusal(reply)) {
      return reply.reason === "Unauthenticated" ? noMailbox : outcomeOf(reply)
    }
  }
  if (followUp !== undefined) return yield* replace(peers, deps, delivery, followUp, name)
  const { digest, idRandom } = namesOf(id, to, 0)
  const fragment = resealFragment(keyring, from, address(mailboxKind, name), stored)
  if (fragment === undefined) return noPasswordKey
  yield* noteLink(peers, deps, fragment, name, idRandom)
  const message: MailboxMessage = { _tag: "Deposit", fragment, digest, idRandom, account }
  const reply = yield* askMailbox(peers, name, message)
  if (isRefusal(reply)) return outcomeOf(reply)
  if (reply._tag !== "Deposited") throw new Error(`a mailbox answered ${reply._tag}`)
  const location = links.stored(name, notificationId(reply.n, idRandom))
  return { _tag: "Delivered", code: 202, location } satisfies DeliveryOutcome
})

const unavailable: DeliveryOutcome = {
  _tag: "RetryableFailure",
  code: 503,
  problem: "the mailbox is unavailable"
}

const tooLarge = permanentFailure(413, "the mailbox cannot store so large a notification")

/** Deposits the notification; the mailbox's deduplication window makes a repetition a no-op. */
export const deliverLocally = (
  peers: Peers,
  deps: DeliveryDependencies,
  delivery: LocalDelivery
): Effect.Effect<DeliveryOutcome> =>
  Effect.catch(
    deposit(peers, deps, delivery),
    ({ _tag }) => Effect.succeed(_tag === "ValueTooLarge" ? tooLarge : unavailable)
  )
