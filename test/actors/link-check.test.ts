/** What a check of a content's links finds in the mailboxes. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { checkLinks } from "../../actors/content/link-check.ts"
import type { ContentLink, LinkFinding } from "../../actors/content/protocol.ts"
import { linkCheckItems, linkDepositMaxMs } from "../../actors/limits.ts"
import { encodeItem, encodeRemoval } from "../../actors/mailbox/log-item.ts"
import { type Peers, refuse } from "../../runtime/index.ts"
import { nowMs } from "./cells.ts"

const part = (name: string): string => name.padEnd(22, "_")

/** A mailbox whose items were received at these times; item 1 is a removal event. */
class MailboxLog {
  readonly items = [encodeRemoval(0, ["gone"])]
  readonly retrieved = new Set<number>()
  isDestroyed = false
  reads = 0

  receive(atMs: number, name: string): number {
    return this.items.push(encodeItem(atMs, part(name), part("digest"), "<item/>"))
  }

  readonly peers: Peers = {
    ask: (_to, message) => {
      if (this.isDestroyed) return Effect.succeed(refuse("Gone").answer)
      const { n } = message as { readonly n?: number } // of a CheckNotification
      return Effect.succeed(
        n === undefined
          ? { _tag: "Described", view: { head: this.items.length } }
          : {
            _tag: "NotificationChecked",
            isStored: true,
            isRetrieved: this.retrieved.has(n)
          }
      )
    },
    read: (_at, from, limit) =>
      Effect.sync(() => {
        this.reads += limit
        return this.items.slice(from - 1, from - 1 + limit)
          .map((value, at) => ({ n: from + at, value }))
      })
  }
}

const linkOf = (name: string, atMs: number): ContentLink => ({
  mailbox: "alice",
  idRandom: part(name),
  fromMs: atMs,
  toMs: atMs
})

const check = async (
  log: MailboxLog,
  link: ContentLink,
  { atMs = nowMs, isInlined = false } = {}
): Promise<LinkFinding | undefined> => {
  const action = { _tag: "CheckLinks", links: [link], isInlined, nowMs: atMs } as const
  const [checked] = await Effect.runPromise(checkLinks(log.peers, action))
  expect(checked).toMatchObject({ mailbox: "alice", idRandom: link.idRandom, toMs: link.toMs })
  return checked?.found
}

const hourMs = 3_600_000
const agoMs = nowMs - 24 * hourMs

describe("a check of a link", () => {
  it("finds the notification after the number it notes, and whether it was retrieved", async () => {
    const log = new MailboxLog()
    for (let n = 0; n < 500; n++) log.receive(agoMs - 500_000_000 + n * 1_000_000, `other${n}`)
    const afterN = log.items.length
    const n = log.receive(agoMs, "one")
    for (let more = 0; more < 500; more++) log.receive(nowMs, `more${more}`)
    const link = { ...linkOf("one", agoMs), afterN }
    expect(await check(log, link)).toEqual({ _tag: "Kept", n })
    expect(log.reads).toBeLessThan(200)
    log.retrieved.add(n)
    expect(await check(log, link)).toEqual({ _tag: "Ended" })
    expect(await check(log, link, { isInlined: true })).toEqual({ _tag: "Kept", n })
    expect(await check(log, { ...link, n }, { isInlined: true })).toEqual({ _tag: "Kept", n })
  })

  it("ends where the notification is gone or was not deposited, or its mailbox is", async () => {
    const log = new MailboxLog()
    const n = log.receive(agoMs, "one")
    expect(await check(log, linkOf("other", agoMs))).toEqual({ _tag: "Ended" })
    expect(await check(log, { ...linkOf("other", agoMs), n })).toEqual({ _tag: "Ended" })
    expect(await check(log, { ...linkOf("one", agoMs), n: n + 1 })).toEqual({ _tag: "Ended" })
    log.isDestroyed = true
    expect(await check(log, linkOf("one", agoMs))).toEqual({ _tag: "Ended" })
  })

  it("does not end a link because of a clock that is wrong", async () => {
    for (const noted of [{}, { afterN: 1 }]) {
      // The time of a log never goes back: it stays where a clock that was ahead has put it.
      const ahead = new MailboxLog()
      for (let n = 0; n < 60; n++) ahead.receive(agoMs + hourMs, `other${n}`)
      const afterAhead = ahead.receive(agoMs + hourMs, "one")
      const link = { ...linkOf("one", agoMs), ...noted }
      expect(await check(ahead, link)).toEqual({ _tag: "Kept", n: afterAhead })
      // The clock of the mailbox's node is behind that of the content's node.
      const behind = new MailboxLog()
      const n = behind.receive(agoMs - 2 * linkDepositMaxMs, "one")
      expect(await check(behind, link)).toEqual({ _tag: "Kept", n })
    }
  })

  it("does not end a link whose deposit may be on its way", async () => {
    const log = new MailboxLog()
    const link = linkOf("late", agoMs)
    const unknown = { _tag: "Unknown", afterN: log.items.length }
    expect(await check(log, link, { atMs: agoMs + linkDepositMaxMs - 1 })).toEqual(unknown)
    expect(await check(log, link, { atMs: agoMs + linkDepositMaxMs })).toEqual({ _tag: "Ended" })
  })

  it("continues a search that reads too much, and finds the notification in the end", async () => {
    const log = new MailboxLog()
    const count = 2 * linkCheckItems + 100
    for (let n = 0; n < count; n++) log.receive(agoMs + n, `other${n}`)
    const n = log.receive(agoMs + count, "one")
    let link: ContentLink = linkOf("one", agoMs)
    let found = await check(log, link)
    let checks = 1
    for (; found?._tag === "Unknown" && checks < 5; checks++) {
      expect(found.afterN).toBeGreaterThan(link.afterN ?? 0)
      link = { ...link, afterN: found.afterN }
      found = await check(log, link)
    }
    expect([found, checks]).toEqual([{ _tag: "Kept", n }, 3])
  })
})
