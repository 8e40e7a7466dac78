/** Invariants over all responses to clients, checked when every fault has ended. */
import { expect } from "vitest"
import { expectLinearizable } from "../../runtime/testing/index.ts"
import { asAdmin, send } from "../e2e/client.ts"
import { eventually, publicUrl } from "../e2e/process.ts"
import { type Entry, mailbox } from "../histories/models/mailbox.ts"
import { notification } from "../histories/models/notification.ts"
import { registration } from "../histories/models/registration.ts"
import { session } from "../histories/models/session.ts"
import { stored } from "../histories/models/stored.ts"
import type { Workload } from "./workload.ts"
import { logNumberOf, type WorkloadMailbox } from "./workloads/mailboxes.ts"
import type { SentNotification } from "./workloads/outgoing.ts"
import type { WorkloadRegistration } from "./workloads/registrations.ts"

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
const readMailboxes = async (
  { mailboxes }: Workload,
  urls: ReadonlyArray<string>
): Promise<ReadonlyMap<WorkloadMailbox, ReadonlyArray<Entry>>> => {
  const found = new Map<WorkloadMailbox, ReadonlyArray<Entry>>()
  await forAll(mailboxes.all, async (mailbox, at) => {
    for (const [n, url] of urls.entries()) {
      await eventuallyTrue(`${mailbox.path} is listed by ${url}`, async () => {
        const listed = await mailboxes.list(`v${at}-${n}`, url, mailbox)
        if (listed?._tag === "Listed") found.set(mailbox, listed.entries)
        return listed !== undefined
      })
    }
  })
  return found
}

const readOtherResources = async (load: Workload): Promise<void> => {
  const { contents, registrations, sessions } = load
  await forAll(sessions.paths, (path) => sessions.show("v", load.anyNode(), path))
  await contents.repeatPending(load.anyNode)
  await forAll(contents.all, (one) => contents.read("v", load.anyNode(), one))
  await forAll(registrations.all, (one) => registrations.show("v", load.anyNode(), one))
}

/** Expects that every notification that nobody deleted ends with success for each recipient. */
const expectSent = async (load: Workload): Promise<void> => {
  const { outgoing } = load
  const isSent = async (one: SentNotification): Promise<boolean> => {
    const result = await outgoing.show("v", load.anyNode(), one)
    if (result === undefined || result._tag === "Done") return false
    if (one.isDeleted || result._tag === "Gone") return true
    return result.recipients.every(({ status }) => status === "success")
  }
  await forAll(outgoing.sent, (one) => eventuallyTrue(`${one.path} is sent`, () => isSent(one)))
}

/** Expects that every sent notification reached every recipient, under one key each. */
const expectRelayed = (
  { outgoing: { receivers, sent } }: Workload,
  delivered: ReadonlyArray<Entry>
): void => {
  const local = new Set(delivered.map(({ id }) => id))
  const lost = sent.filter(({ description, isDeleted }) =>
    !isDeleted && !(local.has(description) && receivers.every(({ ids }) => ids.has(description)))
  )
  expect(lost, "reported as sent, and never received").toEqual([])
  expect(delivered.length, "delivered twice").toBe(local.size)
  for (const { ids } of receivers) {
    expect([...ids].filter(([, keys]) => keys.size > 1), "relayed under several keys").toEqual([])
  }
}

/** Expects that every subscriber received all later notifications, in order, by one id each. */
const expectPushed = async (
  url: string,
  { mailbox, after, received, path }: WorkloadRegistration,
  entries: ReadonlyArray<Entry>
): Promise<void> => {
  const wanted = entries.filter(({ place }) => Number(place) > after)
  const missing = () => {
    const got = new Set([...received.ids.keys()].map(logNumberOf))
    return wanted.map(({ place }) => Number(place)).filter((place) => !got.has(place))
  }
  await eventuallyTrue(`${path} is pushed everything`, async () => missing().length === 0)
    .catch(async (cause: unknown) => {
      const { text } = await send(url, path, { headers: asAdmin })
      const lacks = `${missing().join(", ")} of ${wanted.length} after ${after}`
      throw new Error(`${String(cause)}: it lacks ${lacks}; it is ${text}`, { cause })
    })
  const order = received.order.map(logNumberOf)
  expect(order, `${path} is pushed in order`)
    .toEqual(order.toSorted((one, other) => one - other))
  expect(order.filter((place) => place <= after), "pushed from before").toEqual([])
  expect([...received.ids].filter(([, ids]) => ids.size > 1), "pushed under several ids").toEqual(
    []
  )
  const others = [...received.ids.keys()].filter((href) =>
    !href.startsWith(`${publicUrl}${mailbox.path}/notifications/`)
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
export const checkRun = async (
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
  const entries = await readMailboxes(load, urls)
  await readOtherResources(load)
  const { outgoing, registrations } = load
  expectRelayed(load, entries.get(outgoing.localMailbox) ?? [])
  for (const one of registrations.all) {
    if (!one.isDeleted) await expectPushed(load.anyNode(), one, entries.get(one.mailbox) ?? [])
  }
  await load.keyed.repeatAndList(load.anyNode)
  expectAllLinearizable(load)
  expect(load.recorder.violations).toEqual([])
}
