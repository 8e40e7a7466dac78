/** Local delivery: to a mailbox of this service, without HTTP (protocol §1.3). */
import { Effect } from "effect"
import { type Address, address, isRefusal, type Peers, type Refusal } from "../../runtime/index.ts"
import { askContent } from "../content/index.ts"
import type { Keyring } from "../keyring.ts"
import { type Links, mayNameContent } from "../links.ts"
import { askMailbox, localDeliveryIdRandom, mailboxKind, type MailboxMessage, notificationId,
  partChars } from "../mailbox/index.ts"
import type { DeliveryOutcome } from "../outbound/index.ts"
import { resealFragment } from "../sealed-fragment.ts"
import { sha256 } from "../secret-hash.ts"

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

const deposit = Effect.fnUntraced(function*(
  peers: Peers,
  deps: DeliveryDependencies,
  { account, fragment: stored, from, to }: LocalDelivery
) {
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
  // Both are the same in every attempt, so that the mailbox deduplicates.
  const idRandom = localDeliveryIdRandom(derivedName("item", id, to))
  const digest = derivedName("digest", id, to).slice(0, partChars)
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
