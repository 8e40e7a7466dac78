/** A service with mailboxes, and the requests of its clients. */
import { childOf, childrenOf, type Element, textOf } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"

/** Credentials of the owner of all mailboxes. */
export const owner = `admin:${adminToken}`

export interface Opened {
  readonly href: string
  readonly password: string
  readonly shared: string
}

export interface Mailboxes extends Harness {
  /** Credentials of another account. */
  readonly bob: string
  readonly open: (name: string, settings?: string) => Promise<Opened>
  readonly deposit: (href: string, description: string) => Promise<Answered>
}

export const notification = (description: string, url = "http://example.org/m") =>
  `<notification><item><description>${description}</description>` +
  `<url>${url}</url></item></notification>`

const opened = (answer: Answered): Opened => {
  if (answer.status !== 201) throw new Error(`not opened: ${answer.status} ${answer.text}`)
  return {
    href: answer.header("location"),
    password: answer.child("password") ?? "",
    shared: childOf(answer.xml, "shared")?.attributes["href"] ?? ""
  }
}

/** Starts the service; its handlers get the changed one. */
export const startMailboxes = async (
  changed: (service: Service) => Service = (service) => service,
  settings: Parameters<typeof startService>[1] = {}
): Promise<Mailboxes> => {
  const service = await startService((one) => resourceTable(changed(one)), settings)
  const created = await service.send("POST", "/accounts", {
    basic: owner,
    body: "<account><name>bob</name></account>"
  })
  return {
    ...service,
    bob: `bob:${created.child("token")}`,
    open: async (name, settings = "") =>
      opened(
        await service.send("POST", "/mailboxes", {
          basic: owner,
          body: `<mailbox><name>${name}</name>${settings}</mailbox>`
        })
      ),
    deposit: (href, description) =>
      service.send("POST", href, { body: notification(description), type: "text/xml+rss" })
  }
}

/** The text of a child; throws if it is missing. */
export const childText = (node: Element, name: string): string => {
  const child = childOf(node, name)
  if (child === undefined) throw new Error(`${node.name} has no ${name}`)
  return textOf(child)
}

/** The item of a notification. */
export const itemOf = (notification: Element | undefined): Element => {
  const item = notification === undefined ? undefined : childOf(notification, "item")
  if (item === undefined) throw new Error("there is no item")
  return item
}

/** The descriptions of a listing, in its order. */
export const descriptions = (answer: Answered): ReadonlyArray<string> =>
  childrenOf(answer.xml, "notification").map((one) => childText(itemOf(one), "description"))

/** The time of a listing. */
export const timeOf = (answer: Answered): string => answer.xml.attributes["time"] ?? ""
