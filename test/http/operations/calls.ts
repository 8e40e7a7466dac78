/** What those who ask every operation share. */
import { expect } from "vitest"
import { admin, type OperationRequester, type Step } from "../operation-requests.ts"
import type { Answered, Harness } from "../harness.ts"
import type { Receiver } from "../receiver.ts"
import { stream, type StreamEvent } from "../streams.ts"

/** A running service, the receiver of its pushes, and a way to send requests. */
export interface OperationCalls {
  readonly service: Harness
  readonly receiver: Receiver
  readonly send: Harness["send"]
  readonly asks: (key: string, step: Step) => Promise<ReadonlyArray<Answered>>
  /** Those of these paths, without credentials. */
  readonly reads: (...paths: ReadonlyArray<string>) => Promise<void>
}

export const callsTo = (
  service: Harness,
  receiver: Receiver,
  requester: OperationRequester
): OperationCalls => ({
  service,
  receiver,
  send: (...request) => service.send(...request),
  asks: (key, step) => requester.asks(key, step),
  reads: async (...paths) => {
    for (const path of paths) await requester.asks(`GET ${path}`, { path, basic: undefined })
  }
})

/** The path of the URI in the Location of the last answer that has one. */
export const located = ({ base }: Harness, answers: ReadonlyArray<Answered>): string => {
  const uris = answers.flatMap(({ headers }) => headers.get("location") ?? [])
  return (uris.at(-1) ?? "").replace(base, "")
}

/** The first event of a resource's stream, which is opened as the document says. */
export const firstEvent = async (
  { base, contract }: Harness,
  path: string
): Promise<StreamEvent | undefined> => {
  const live = await stream(base + path, admin)
  const { headers, status } = live.response
  const first = await live.next()
  live.close()
  const text = first?.data ?? ""
  expect(contract.faults({ method: "GET", path, status, headers, text })).toEqual([])
  return first
}

/** The item of a notification. */
export const item = (round: number) => ({
  description: `no ${round}`,
  url: "http://example.org/m"
})
