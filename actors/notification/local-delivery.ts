/** Handing a notification over to a mailbox of this service, not over HTTP (protocol §1.3). */
import { Effect } from "effect"
import { hash } from "node:crypto"
import { type Address, address, type AskFailure, isRefusal, type Peers,
  type Refusal } from "../../runtime/index.ts"
import type { Links } from "../links.ts"
import { mailboxKind, type MailboxMessage, type MailboxReply, notificationId,
  partChars } from "../mailbox/index.ts"
import type { DeliveryOutcome } from "../outbound/index.ts"

/** What is handed over, and to whom. */
export interface LocalDelivery {
  /** The id of the outgoing notification. */
  readonly id: string
  /** Its recipient: a URI of this service. */
  readonly to: string
  /** The sender's account. */
  readonly account: string
  readonly fragment: string
}

/** A name of one notification for one recipient, the same in every attempt; base64url. */
export const nameOf = (purpose: string, id: string, to: string): string =>
  hash("sha256", `${purpose}\n${id}\n${to}`, "base64url")

const refused = (code: number, problem: string): DeliveryOutcome => ({
  _tag: "Refused",
  code,
  problem
})

const noMailbox = refused(404, "there is no such mailbox")

const outcomeOf = ({ reason }: Refusal): DeliveryOutcome => {
  switch (reason) {
    case "NotFound":
      return noMailbox
    case "Gone":
      return refused(410, "the mailbox was deleted")
    case "Unauthenticated":
      return refused(401, "the mailbox takes notifications of accounts only")
    case "Forbidden":
      return refused(403, "the mailbox does not take this")
    case "Full":
      return { _tag: "Faulted", code: 507, problem: "the mailbox is full" }
    default:
      return { _tag: "Faulted", code: 503, problem: "the mailbox does not take it just now" }
  }
}

const askMailbox = (
  peers: Peers,
  to: Address,
  message: MailboxMessage
): Effect.Effect<MailboxReply | Refusal, AskFailure> =>
  // A mailbox answers in its own protocol, and in no other.
  peers.ask(to, message) as Effect.Effect<MailboxReply | Refusal, AskFailure>

const hashOf = (secret: string): string => hash("sha256", secret, "base64url")

const deposit = Effect.fnUntraced(function*(
  peers: Peers,
  links: Links,
  { account, fragment, id, to }: LocalDelivery
) {
  const mailbox = links.mailboxOf(to)
  if (mailbox === undefined) return refused(405, "this is not a mailbox of this service")
  const { name, secret } = mailbox
  const there = address(mailboxKind, name)
  if (secret !== undefined) {
    const reader = { secretHash: hashOf(secret) }
    const reply = yield* askMailbox(peers, there, { _tag: "List", reader })
    // A wrong secret is told from no mailbox by nothing.
    if (isRefusal(reply)) {
      return reply.reason === "Unauthenticated" ? noMailbox : outcomeOf(reply)
    }
  }
  // Both follow from the notification and its recipient: the mailbox knows a copy by them.
  const idRandom = nameOf("item", id, to).slice(0, partChars)
  const digest = nameOf("digest", id, to).slice(0, partChars)
  const message: MailboxMessage = { _tag: "Deposit", fragment, digest, idRandom, account }
  const reply = yield* askMailbox(peers, there, message)
  if (isRefusal(reply)) return outcomeOf(reply)
  if (reply._tag !== "Deposited") throw new Error(`a mailbox answered ${reply._tag}`)
  const location = links.stored(name, notificationId(reply.n, idRandom))
  return { _tag: "Delivered", code: 202, location } satisfies DeliveryOutcome
})

/** Hands it over; a repetition finds the first copy, as long as the mailbox remembers it. */
export const deliverLocally = (
  peers: Peers,
  links: Links,
  handed: LocalDelivery
): Effect.Effect<DeliveryOutcome> =>
  Effect.catch(deposit(peers, links, handed), () =>
    Effect.succeed<DeliveryOutcome>({
      _tag: "Faulted",
      code: 503,
      problem: "the mailbox is away"
    }))
