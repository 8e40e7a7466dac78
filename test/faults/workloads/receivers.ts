/** External receivers: the relays and pushes that they received, with counts and ids. */
import { descriptionOf, echoes, misbehave, pushed, type Received,
  receiver } from "../../e2e/receivers.ts"

/** The requests of one receiver. */
export class ReceivedRequests {
  /** The ids of the requests, by notification. */
  readonly ids = new Map<string, Set<string>>()
  /** Notifications in the order of their first receipt. */
  readonly order: Array<string> = []
  /** Whether half of its responses are failures. */
  readonly isFlaky: boolean
  private turns = 0

  constructor(isFlaky: boolean) {
    this.isFlaky = isFlaky
  }

  record(what: string, id: string): void {
    const ids = this.ids.get(what)
    if (ids !== undefined) return void ids.add(id)
    this.ids.set(what, new Set([id]))
    this.order.push(what)
  }

  get nextTurn(): number {
    return this.turns++
  }
}

export interface Receiver {
  readonly uri: string
  readonly received: ReceivedRequests
}

export interface Receivers {
  /** Recipients of relays: a healthy receiver, and one with failures. */
  readonly recipients: ReadonlyArray<Receiver>
  /** A new callback, and the URIs of notifications that were pushed to it. */
  readonly callback: (name: string, isFlaky: boolean) => Receiver
}

const startRecipient = async (isFlaky: boolean): Promise<Receiver> => {
  const received = new ReceivedRequests(isFlaky)
  const origin = await receiver(({ body, headers }, response) => {
    if (isFlaky && misbehave(received.nextTurn, response)) return
    received.record(descriptionOf(body), String(headers["idempotency-key"]))
    response.writeHead(202, { Location: "/stored" }).end()
  })
  return { uri: `${origin}/inbox`, received }
}

export const startReceivers = async (): Promise<Receivers> => {
  const callbacks = new Map<string, ReceivedRequests>()
  const record = ({ body, headers }: Received, received: ReceivedRequests) => {
    for (const one of pushed(body)) {
      received.record(one.attributes["href"] ?? "", String(headers["webhook-id"]))
    }
  }
  const pushes = await receiver((request, response) => {
    if (echoes(request, response)) return
    const received = callbacks.get(request.path)
    if (received === undefined) return void response.writeHead(404).end()
    if (received.isFlaky && misbehave(received.nextTurn, response)) return
    record(request, received)
    response.writeHead(204).end()
  })
  return {
    recipients: [await startRecipient(false), await startRecipient(true)],
    callback: (name, isFlaky) => {
      const received = new ReceivedRequests(isFlaky)
      callbacks.set(`/${name}`, received)
      return { uri: `${pushes}/${name}`, received }
    }
  }
}
