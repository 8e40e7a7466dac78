/** Receivers outside the cluster: what was relayed and pushed, how often, by which ids. */
import { descriptionOf, echoes, pushed, receiver } from "../e2e/receivers.ts"

/** What one receiver got. */
export class Inbox {
  /** By what came the ids that it came with. */
  readonly ids = new Map<string, Set<string>>()
  /** In the order in which each came first. */
  readonly order: Array<string> = []

  take(what: string, id: string): void {
    const known = this.ids.get(what)
    if (known !== undefined) return void known.add(id)
    this.ids.set(what, new Set([id]))
    this.order.push(what)
  }
}

export interface Inboxes {
  /** Where notifications are relayed to, and what came. */
  readonly relays: { readonly uri: string; readonly inbox: Inbox }
  /** A new callback, and what was pushed to it: the URIs of notifications. */
  readonly callback: (name: string) => { readonly uri: string; readonly inbox: Inbox }
}

export const startInboxes = async (): Promise<Inboxes> => {
  const relayed = new Inbox()
  const callbacks = new Map<string, Inbox>()
  const relays = await receiver(({ body, headers }, response) => {
    relayed.take(descriptionOf(body), String(headers["idempotency-key"]))
    response.writeHead(202, { Location: "/stored" }).end()
  })
  const pushes = await receiver((received, response) => {
    if (echoes(received, response)) return
    const inbox = callbacks.get(received.path)
    for (const one of pushed(received.body)) {
      inbox?.take(one.attributes["href"] ?? "", String(received.headers["webhook-id"]))
    }
    response.writeHead(204).end()
  })
  return {
    relays: { uri: `${relays}/inbox`, inbox: relayed },
    callback: (name) => {
      const inbox = new Inbox()
      callbacks.set(`/${name}`, inbox)
      return { uri: `${pushes}/${name}`, inbox }
    }
  }
}
