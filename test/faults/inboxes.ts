/** External receivers: the relays and pushes that they received, with counts and ids. */
import { descriptionOf, echoes, misbehave, pushed, type Received,
  receiver } from "../e2e/receivers.ts"

/** The requests of one receiver. */
export class Inbox {
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

  take(what: string, id: string): void {
    const ids = this.ids.get(what)
    if (ids !== undefined) return void ids.add(id)
    this.ids.set(what, new Set([id]))
    this.order.push(what)
  }

  get turn(): number {
    return this.turns++
  }
}

export interface Place {
  readonly uri: string
  readonly inbox: Inbox
}

export interface Inboxes {
  /** Recipients of relays: a healthy receiver, and one with failures. */
  readonly relays: ReadonlyArray<Place>
  /** A new callback, and the URIs of notifications that were pushed to it. */
  readonly callback: (name: string, isFlaky: boolean) => Place
}

const relayTo = async (isFlaky: boolean): Promise<Place> => {
  const inbox = new Inbox(isFlaky)
  const origin = await receiver(({ body, headers }, response) => {
    if (isFlaky && misbehave(inbox.turn, response)) return
    inbox.take(descriptionOf(body), String(headers["idempotency-key"]))
    response.writeHead(202, { Location: "/stored" }).end()
  })
  return { uri: `${origin}/inbox`, inbox }
}

export const startInboxes = async (): Promise<Inboxes> => {
  const callbacks = new Map<string, Inbox>()
  const take = (received: Received, inbox: Inbox) => {
    for (const one of pushed(received.body)) {
      inbox.take(one.attributes["href"] ?? "", String(received.headers["webhook-id"]))
    }
  }
  const pushes = await receiver((received, response) => {
    if (echoes(received, response)) return
    const inbox = callbacks.get(received.path)
    if (inbox === undefined) return void response.writeHead(404).end()
    if (inbox.isFlaky && misbehave(inbox.turn, response)) return
    take(received, inbox)
    response.writeHead(204).end()
  })
  return {
    relays: [await relayTo(false), await relayTo(true)],
    callback: (name, isFlaky) => {
      const inbox = new Inbox(isFlaky)
      callbacks.set(`/${name}`, inbox)
      return { uri: `${pushes}/${name}`, inbox }
    }
  }
}
