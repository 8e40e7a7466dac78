/**
 * Checks which notifications still keep a content. A link is noted before its notification is
 * deposited, with the head of the mailbox's log: a search from there on finds its number.
 */
import { Effect } from "effect"
import { address, type AskFailure, isRefusal, type LogItem,
  type Peers } from "../../runtime/index.ts"
import { linkCheckItems, linkCheckPageItems, linkDepositMaxMs } from "../limits.ts"
import { askMailbox, decodeItem, isRemoval, mailboxKind } from "../mailbox/index.ts"
import type { ContentAction, ContentLink, LinkFinding } from "./protocol.ts"

type CheckLinks = Extract<ContentAction, { readonly _tag: "CheckLinks" }>

/** One check of all links of a content. */
interface LinkCheck {
  readonly peers: Peers
  readonly nowMs: number
  readonly isInlined: boolean
  /** The items that it may still read. */
  itemsLeft: number
}

const ended: LinkFinding = { _tag: "Ended" }

const isLinked = ({ value }: LogItem, { idRandom }: ContentLink): boolean =>
  !isRemoval(value) && decodeItem(value).idRandom === idRandom

/**
 * The number of the linked notification; where the search ends without it, what that means. Only a
 * search that has read the whole log since the link was noted can end a link. No clock limits it:
 * those of two nodes differ, and the time of a log never goes back when a clock is corrected.
 */
const search = Effect.fnUntraced(function*(check: LinkCheck, link: ContentLink, head: number) {
  const { nowMs, peers } = check
  const log = address(mailboxKind, link.mailbox)
  // A link without a number was noted by an earlier version, or by a repeated deposit.
  let next = (link.afterN ?? 0) + 1
  while (next <= head) {
    if (check.itemsLeft <= 0) return { _tag: "Unknown", afterN: next - 1 } as const
    const items = yield* peers.read(log, next, linkCheckPageItems)
    check.itemsLeft -= items.length
    const found = items.find((item) => isLinked(item, link))
    if (found !== undefined) return found.n
    const last = items.at(-1)
    if (last === undefined) break
    next = last.n + 1
  }
  // The notification may be on its way to the mailbox.
  return nowMs < link.toMs + linkDepositMaxMs
    ? { _tag: "Unknown", afterN: next - 1 } as const
    : ended
})

/** The number of a notification that an earlier check has found, or that a search finds. */
const locate = Effect.fnUntraced(function*(check: LinkCheck, link: ContentLink, head: number) {
  const { mailbox, n } = link
  if (n === undefined) return yield* search(check, link, head)
  const [item] = yield* check.peers.read(address(mailboxKind, mailbox), n, 1)
  return item?.n === n && isLinked(item, link) ? n : ended
})

const checkLink = Effect.fnUntraced(function*(
  check: LinkCheck,
  link: ContentLink
): Effect.fn.Return<LinkFinding, AskFailure> {
  const { isInlined, peers } = check
  const { mailbox } = link
  const described = yield* askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  if (isRefusal(described) || described._tag !== "Described") return ended
  const found = yield* locate(check, link, described.view.head)
  if (typeof found !== "number") return found
  const reply = yield* askMailbox(peers, mailbox, { _tag: "CheckNotification", n: found })
  if (isRefusal(reply) || reply._tag !== "NotificationChecked") return ended
  const { isRetrieved, isStored } = reply
  return isStored && (isInlined || !isRetrieved) ? { _tag: "Kept", n: found } : ended
})

/** What a check of all links has found, in their order. */
export const checkLinks = Effect.fnUntraced(function*(
  peers: Peers,
  { isInlined, links, nowMs }: CheckLinks
) {
  const check: LinkCheck = { peers, nowMs, isInlined, itemsLeft: linkCheckItems }
  return yield* Effect.forEach(
    links,
    (link) =>
      Effect.map(checkLink(check, link), (found) => ({
        mailbox: link.mailbox,
        idRandom: link.idRandom,
        toMs: link.toMs,
        found
      }))
  )
})
