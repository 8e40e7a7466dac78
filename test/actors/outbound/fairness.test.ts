/** A bad origin delays no other: the client with receivers that hang, are gone or are slow. */
import { expect, it } from "vitest"
import type { DeliveryOutcome } from "../../../actors/outbound/protocol.ts"
import { answering, client, closedPort, patient, receiver, speaking } from "./rig.ts"

it("a hanging origin with a thousand posts delays no healthy one", async () => {
  const hanging = await speaking(() => undefined)
  const healthy = await answering(204)
  const { outbound, post } = await client({
    limits: { attemptMs: 60_000, connectMs: 60_000, waitingPerOriginMax: 900 }
  })
  const order: Array<string> = []
  const dead = Array.from({ length: 1_000 }, () => post(hanging.uri).then(() => order.push("dead")))
  const alive = Array.from({ length: 20 }, () => post(healthy.uri).then(() => order.push("alive")))
  await Promise.all(alive)
  // Posts for which there was no room are deferred at once; those in flight and waiting are not.
  expect(outbound.metrics()).toMatchObject({
    inFlight: 8,
    waiting: 900,
    outcomes: { Delivered: 20, Deferred: 1_000 - 8 - 900 }
  })
  expect(hanging.connections()).toBeLessThanOrEqual(8)
  expect(dead).toHaveLength(1_000)
})

it("an origin that is gone opens its circuit, and closes it when it is back", async () => {
  const port = await closedPort()
  const clock = { nowMs: Date.now() }
  const { outbound, post } = await client({
    monotonicMs: () => clock.nowMs,
    limits: { failuresMax: 3 }
  })
  const gone = `http://127.0.0.1:${port}`
  const outcomes: Array<DeliveryOutcome["_tag"]> = []
  for (let n = 0; n < 6; n++) outcomes.push((await post(gone))._tag)
  expect(outcomes).toEqual([
    "RetryableFailure",
    "RetryableFailure",
    "RetryableFailure",
    "Deferred",
    "Deferred",
    "Deferred"
  ])
  expect(outbound.metrics()).toMatchObject({ circuitsOpen: 1, origins: 1 })
  const { createServer } = await import("node:http")
  const back = createServer((_, response) => void response.writeHead(204).end())
  await new Promise<void>((resolve) => back.listen(port, "127.0.0.1", resolve))
  clock.nowMs += 1_000
  expect(await post(gone)).toMatchObject({ _tag: "Delivered" })
  expect(await post(gone)).toMatchObject({ _tag: "Delivered" })
  expect(outbound.metrics().circuitsOpen).toBe(0)
  back.closeAllConnections()
  await new Promise((resolve) => back.close(resolve))
})

it("an origin that answers with errors keeps its circuit closed", async () => {
  const at = await answering(503)
  const { outbound, post } = await client({ limits: { failuresMax: 2 } })
  for (let n = 0; n < 5; n++) expect(await post(at.uri)).toMatchObject({ code: 503 })
  expect(outbound.metrics().circuitsOpen).toBe(0)
})

it("an origin that redirects in the last moment opens no circuit of its target", async () => {
  const attemptMs = 4_000
  const target = await receiver((request, response) => {
    // The time of the attempt ends before its answer to what was redirected.
    if (request.url === "/") response.writeHead(204).end()
  })
  const late = await receiver((_, response) => {
    const redirect = () => response.writeHead(307, { location: `${target.uri}/slow` }).end()
    setTimeout(redirect, attemptMs * 0.55)
  })
  const { post } = await client({ limits: { attemptMs, connectMs: attemptMs, failuresMax: 2 } })
  const redirected = await Promise.all(Array.from({ length: 4 }, () => post(late.uri)))
  expect(redirected.map(({ _tag }) => _tag)).toEqual(Array(4).fill("RetryableFailure"))
  expect(target.came.length).toBeGreaterThan(0)
  expect(await post(target.uri)).toMatchObject({ _tag: "Delivered" })
})

it("a forbidden name neither opens a circuit nor is remembered", async () => {
  const { outbound, post } = await client({ allow: [], limits: { failuresMax: 1 } })
  for (let n = 0; n < 3; n++) {
    expect(await post("http://localhost/")).toMatchObject({
      _tag: "PermanentFailure"
    })
  }
  expect(outbound.metrics()).toMatchObject({ circuitsOpen: 0, origins: 0 })
})

it("no more than its share of requests is at an origin at a time", async () => {
  let now = 0
  let most = 0
  const at = await receiver((_, response) => {
    most = Math.max(most, ++now)
    setTimeout(() => {
      now -= 1
      response.writeHead(204).end()
    }, 5)
  })
  const { outbound, post } = await client({ limits: patient })
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => post(at.uri)))
  expect(new Set(outcomes.map(({ _tag }) => _tag))).toEqual(new Set(["Delivered"]))
  expect(most).toBe(8)
  expect(outbound.metrics()).toMatchObject({ inFlight: 0, waiting: 0 })
})

/** A receiver that responds on command; a post occupies its only connection. */
const occupied = async () => {
  const release: Array<() => void> = []
  const at = await receiver((_, response) => {
    release.push(() => response.writeHead(204).end())
  })
  const limits = { perOriginMax: 1 }
  const { post } = await client({ limits })
  const first = post(at.uri)
  while (release.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  return {
    at,
    post,
    first,
    answer: () => {
      for (const each of release.splice(0)) each()
    }
  }
}

const sent = { headers: {}, body: "<item/>" }

const unwanted = { _tag: "PermanentFailure", problem: "no longer wanted" }

it("content is loaded when the permit is granted", async () => {
  const { answer, at, first, post } = await occupied()
  let wanted = true
  const second = post(at.uri, { load: () => wanted ? sent : undefined })
  wanted = false
  answer()
  expect(await first).toMatchObject({ _tag: "Delivered" })
  expect(await second).toEqual(unwanted)
  expect(at.came).toHaveLength(1)
})
