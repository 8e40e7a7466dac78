/** Invariants over all responses to clients, checked when every fault has ended. */
import { expect } from "vitest"
import { eventually, publicUrl } from "../e2e/process.ts"
import { asAdmin, send } from "../e2e/client.ts"
import { expectLinearizable } from "../histories/linearizable.ts"
import { type Entry, mailbox } from "../histories/models/mailbox.ts"
import { notification } from "../histories/models/notification.ts"
import { registration } from "../histories/models/registration.ts"
import { session } from "../histories/models/session.ts"
import { stored } from "../histories/models/stored.ts"
import { type Box, placeOf } from "./boxes.ts"
import type { Sent } from "./posts.ts"
import type { Subscription } from "./subscriptions.ts"
import type { Workload } from "./workload.ts"

/** By then relays and pushes from the time of a fault have arrived. */
const deliveredWithinMs = 120_000
const readyWithinMs = 120_000
const concurrency = 8
const pollMs = 200

/** Runs a check for all of them, some concurrently. */
const forAll = async <A>(
  all: ReadonlyArray<A>,
  act: (one: A, at: number) => Promise<unknown>
): Promise<void> => {
  const left = [...all.entries()]
  await Promise.all(Array.from({ length: concurrency }, async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await act(one[1], one[0])
  }))
}

const eventuallyTrue = (what: string, check: () => Promise<boolean>) =>
  eventually(deliveredWithinMs, what, async () => await check() || undefined, pollMs)

/** Compares the notifications of every mailbox, as each node lists them, with the history. */
const lookAtBoxes = async (
  { boxes }: Workload,
  urls: ReadonlyArray<string>
): Promise<ReadonlyMap<Box, ReadonlyArray<Entry>>> => {
  const found = new Map<Box, ReadonlyArray<Entry>>()
  await forAll(boxes.all, async (box, at) => {
    for (const [n, url] of urls.entries()) {
      await eventuallyTrue(`${box.path} is listed by ${url}`, async () => {
        const listed = await boxes.list(`v${at}-${n}`, url, box)
        if (listed?._tag === "Listed") found.set(box, listed.entries)
        return listed !== undefined
      })
    }
  })
  return found
}

const lookAtTheRest = async (load: Workload): Promise<void> => {
  const { contents, subscriptions, walks } = load
  await forAll(walks.paths, (path) => walks.show("v", load.anywhere(), path))
  await contents.settle(load.anywhere)
  await forAll(contents.all, (one) => contents.read("v", load.anywhere(), one))
  await forAll(subscriptions.all, (one) => subscriptions.show("v", load.anywhere(), one))
}

/** Expects that every notification that nobody deleted ends with success for each recipient. */
const expectSent = async (load: Workload): Promise<void> => {
  const { posts } = load
  const isSent = async (one: Sent): Promise<boolean> => {
    const result = await posts.show("v", load.anywhere(), one)
    if (result === undefined || result._tag === "Done") return false
    if (one.isDeleted || result._tag === "Gone") return true
    return result.recipients.every(({ status }) => status === "success")
  }
  await forAll(posts.sent, (one) => eventuallyTrue(`${one.path} is sent`, () => isSent(one)))
}

/** Expects that every sent notification reached every recipient, under one key each. */
const expectRelayed = (
  { posts: { relays, sent } }: Workload,
  handedOver: ReadonlyArray<Entry>
): void => {
  const there = new Set(handedOver.map(({ id }) => id))
  const lost = sent.filter(({ description, isDeleted }) =>
    !isDeleted && !(there.has(description) && relays.every(({ ids }) => ids.has(description)))
  )
  expect(lost, "reported as sent, and never received").toEqual([])
  expect(handedOver.length, "handed over twice").toBe(there.size)
  for (const { ids } of relays) {
    expect([...ids].filter(([, keys]) => keys.size > 1), "relayed under several keys").toEqual([])
  }
}

/** Expects that every subscriber received all later notifications, in order, by one id each. */
const expectPushed = async (
  url: string,
  { box, after, inbox, path }: Subscription,
  entries: ReadonlyArray<Entry>
): Promise<void> => {
  const wanted = entries.filter(({ place }) => Number(place) > after)
  const missing = () => {
    const got = new Set([...inbox.ids.keys()].map(placeOf))
    return wanted.map(({ place }) => Number(place)).filter((place) => !got.has(place))
  }
  await eventuallyTrue(`${path} is pushed everything`, async () => missing().length === 0)
    .catch(async (cause: unknown) => {
      const { text } = await send(url, path, { headers: asAdmin })
      const lacks = `${missing().join(", ")} of ${wanted.length} after ${after}`
      throw new Error(`${String(cause)}: it lacks ${lacks}; it is ${text}`, { cause })
    })
  const order = inbox.order.map(placeOf)
  expect(order, `${path} is pushed in order`)
    .toEqual(order.toSorted((one, other) => one - other))
  expect(order.filter((place) => place <= after), "pushed from before").toEqual([])
  expect([...inbox.ids].filter(([, ids]) => ids.size > 1), "pushed under several ids").toEqual([])
  const others = [...inbox.ids.keys()].filter((href) =>
    !href.startsWith(`${publicUrl}${box.path}/notifications/`)
  )
  expect(others, "pushed from another mailbox").toEqual([])
}

/** Throws a list of contradictory responses, resource by resource. */
const expectAllLinearizable = ({ recorder: { histories } }: Workload): void => {
  const { contents, mailboxes, notifications, registrations, sessions } = histories
  expectLinearizable("mailbox", mailbox, mailboxes)
  expectLinearizable("session", session, sessions)
  expectLinearizable("content", stored, contents)
  expectLinearizable("notification", notification, notifications)
  expectLinearizable("registration", registration, registrations)
}

/**
 * Verifies everything at these nodes, which must all serve. It ends the load first, and requires
 * that every timer is due.
 */
export const expectSound = async (
  load: Workload,
  urls: ReadonlyArray<string>
): Promise<void> => {
  await load.end()
  // A restarted node may still read an index.
  const isReady = async (url: string) => {
    const answer = await send(url, "/readyz").catch(() => undefined)
    return answer?.status === 200 || undefined
  }
  await forAll(urls, (url) => eventually(readyWithinMs, `${url} is ready`, () => isReady(url)))
  await expectSent(load)
  const entries = await lookAtBoxes(load, urls)
  await lookAtTheRest(load)
  const { posts, subscriptions } = load
  expectRelayed(load, entries.get(posts.relayedTo) ?? [])
  for (const one of subscriptions.all) {
    if (!one.isDeleted) await expectPushed(load.anywhere(), one, entries.get(one.box) ?? [])
  }
  await load.keyed.repeat(load.anywhere)
  expectAllLinearizable(load)
  expect(load.recorder.surprises).toEqual([])
}
