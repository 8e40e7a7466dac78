/** Reading a key while its stream has no leader, on simulated servers. */
import type { Msg } from "@nats-io/transport-node"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { readResendMs, readTimeoutMs } from "../../../runtime/limits.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { readLast } from "../../../runtime/nats/stream/reader.ts"

beforeEach(() => void vi.useFakeTimers())

afterEach(() => void vi.useRealTimers())

const message = JSON.stringify({ message: { subject: "s", seq: 7, data: btoa("there") } })

const reply = { string: () => message } as Msg

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Reads from servers that have a leader only for request number `heard`, from 1. */
const asked = (heard: number) => {
  const questions = { count: 0, answered: false }
  const request = async (subject: string, _: unknown, __: unknown, timeoutMs: number) => {
    if (++questions.count >= heard) return reply
    await pause(timeoutMs)
    throw new NoReply(subject, "timeout")
  }
  const requestMany = () => Promise.reject(new Error("not asked"))
  const dataBytesMax = () => Infinity
  const readBarrier = async () => undefined
  const answer = readLast({ request, requestMany, dataBytesMax, readBarrier }, "S", "s")
  void answer.then(() => questions.answered = true)
  return questions
}

it("reads once if the leader answers", async () => {
  const questions = asked(1)
  await vi.advanceTimersByTimeAsync(readTimeoutMs)
  expect(questions).toEqual({ count: 1, answered: true })
})

it("repeats an unanswered request, and uses the first answer", async () => {
  const questions = asked(3)
  await vi.advanceTimersByTimeAsync(2 * readResendMs)
  expect(questions).toEqual({ count: 3, answered: true })
  await vi.advanceTimersByTimeAsync(readTimeoutMs)
  expect(questions.count).toBe(3)
})
