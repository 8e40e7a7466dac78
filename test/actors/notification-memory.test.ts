/** Notifications with many recipients: few of them are in memory, whoever reads how many. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { bytesPerRecipient, recipientsMax } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { notification } from "../../actors/notification/actor.ts"
import type { NotificationMessage } from "../../actors/notification/protocol.ts"
import { address } from "../../runtime/index.ts"
import { dropAll, start } from "../runtime/rig.ts"
import { noDependencies, noOutbound, testKeyring } from "./dependencies.ts"
import { create, owner, retentionMs, uri } from "./notification-cells.ts"

afterEach(dropAll)

/** Nothing is due for an hour. */
const behavior = notification({
  documents: noDependencies.documents,
  keyring: testKeyring,
  outbound: noOutbound,
  links: linksUnder("http://post.test"),
  records: noDependencies.records,
  schedule: [3_600_000],
  retentionMs,
  random: () => 0.5
})

const recipients = (count: number) => Array.from({ length: count }, (_, n) => uri(n))
const describing: NotificationMessage = { _tag: "Describe", caller: owner, max: 1 }

it("a listing of many keeps as few in memory as one of few, and all small ones", async () => {
  const { system } = await start({
    behaviors: [behavior],
    limits: { largeActorsBytesMax: 4 * bytesPerRecipient * recipientsMax }
  })
  const send = (id: string, message: NotificationMessage) =>
    Effect.runPromise(system.ask(address("notification", id), message))
  const active = () => system.snapshot().activations.get("notification")?.active ?? 0
  const small = ["s0", "s1", "s2", "s3", "s4"]
  const large = Array.from({ length: 12 }, (_, at) => `l${at}`)
  for (const id of small) await send(id, create(recipients(2)))
  for (const id of large) {
    await send(id, create(recipients(recipientsMax)))
    // Each takes its URIs beside the estimate: three fit.
    expect(active()).toBeLessThanOrEqual(small.length + 3)
  }
  const loaded = () => system.snapshot().metrics.of("notification").activations
  for (const id of [...large, ...large]) {
    expect(await send(id, describing)).toMatchObject({
      view: { status: "waiting", count: recipientsMax, recipients: [{ to: uri(0) }] }
    })
    expect(active()).toBeLessThanOrEqual(small.length + 3)
  }
  const before = loaded()
  for (const id of small) await send(id, describing)
  expect(loaded()).toBe(before)
})
