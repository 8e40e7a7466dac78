/** Requests of clients to nodes: over a slow network, to nodes that may be down or crash. */
import type { Address, AskFailure, LogItem, Tagged } from "../../runtime/index.ts"
import type { SimulatedNode } from "./nodes.ts"
import type { Computer } from "./time.ts"
import type { WebAnswer, WebRequest } from "./web.ts"
import type { World } from "./world.ts"

/** A message of any kind of actor. */
export type AnyMessage = Tagged & { readonly [field: string]: unknown }

/** The outcome of a request: an answer, certainly not processed, or unknown. */
export type Answer<Reply> =
  | { readonly _tag: "Answered"; readonly reply: Reply }
  | { readonly _tag: "Failed"; readonly why: string }
  | { readonly _tag: "Unknown"; readonly why: string }

/** How long a client waits for an answer, ms. */
const PATIENCE_MS = 15_000
const WAY_MS = 5

/** Failures after which certainly no actor decided on the message. */
const undecided = ["NoOwner", "Overloaded", "Quarantined", "UnknownMessage", "MessageTooLarge"]

const isDown = "the node is down"

type Settle<Reply> = (answer: Answer<Reply>) => void

export class ClientRequest {
  private readonly world: World
  private readonly computer: Computer
  /** Failures that running nodes returned. */
  readonly unanswered: Array<string> = []

  constructor(world: World, name: string) {
    this.world = world
    this.computer = world.computer(name)
  }

  /** True time. */
  get nowMs(): number {
    return this.world.time.nowMs
  }

  ask(at: number, to: Address, message: AnyMessage): Promise<Answer<unknown>> {
    return this.send(
      at,
      (node, settle) =>
        node.ask(to, message, (failure: AskFailure | undefined, reply) => {
          if (failure === undefined) return settle({ _tag: "Answered", reply })
          const _tag = undecided.includes(failure._tag) ? "Failed" : "Unknown"
          settle({ _tag, why: failure._tag })
        })
    )
  }

  read(at: number, of: Address): Promise<Answer<ReadonlyArray<LogItem>>> {
    return this.send(at, (node, settle) =>
      node.read(of, (items) =>
        settle(
          items === undefined
            ? { _tag: "Failed", why: "no answer" }
            : { _tag: "Answered", reply: items }
        )))
  }

  /** An HTTP request; a failure of the service leaves its outcome open. */
  http(at: number, request: WebRequest): Promise<Answer<WebAnswer>> {
    return this.send(at, (node, settle) =>
      node.request(request, (reply) => {
        const { status, text } = reply
        settle(
          status >= 500
            ? { _tag: "Unknown", why: `${request.method} ${status} ${text}` }
            : { _tag: "Answered", reply }
        )
      }))
  }

  /** Waits until this time. */
  until(atMs: number): Promise<void> {
    const { time } = this.world
    return new Promise((resolve) =>
      void time.on(this.computer, Math.max(0, atMs - time.nowMs), resolve)
    )
  }

  private send<Reply>(
    at: number,
    call: (node: SimulatedNode, settle: Settle<Reply>) => void
  ): Promise<Answer<Reply>> {
    const { nodes, time } = this.world
    const wayMs = (): number => 0.1 + time.random() * WAY_MS
    return new Promise((resolve) => {
      const settle: Settle<Reply> = (answer) => {
        time.on(this.computer, wayMs(), () => resolve(answer))
        if (answer._tag !== "Answered" && answer.why !== isDown) this.unanswered.push(answer.why)
      }
      time.on(this.computer, PATIENCE_MS, () => resolve({ _tag: "Unknown", why: "no answer" }))
      time.later(wayMs(), () => {
        const node = nodes[at]
        const down = { _tag: "Failed", why: isDown } as const
        if (node === undefined || !node.alive) return settle(down)
        time.on(
          node.computer,
          0,
          () => node.system === undefined ? settle(down) : call(node, settle)
        )
      })
    })
  }
}
