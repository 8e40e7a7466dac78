/** A service with mailboxes and cabinets, and the requests of their owner. */
import { childOf, childrenOf, escapeAttribute } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { childText, itemOf, notification } from "./mailbox-harness.ts"

/** Credentials of the owner of all mailboxes and cabinets. */
export const owner = `admin:${adminToken}`

export interface Cabinets extends Harness {
  /** Credentials of another account. */
  readonly bob: string
  /** Opens a mailbox; returns its shared URI. */
  readonly open: (name: string) => Promise<string>
  readonly deposit: (name: string, description: string, url?: string) => Promise<void>
  /** Creates a cabinet of these mailboxes as `account`; returns its URI. */
  readonly make: (hrefs: ReadonlyArray<string>, more?: string, account?: string) => Promise<string>
  readonly read: (href: string, account?: string) => Promise<Answered>
}

/** A cabinet document. */
export const cabinetOf = (hrefs: ReadonlyArray<string>, more = ""): string =>
  `<cabinet>${more}${
    hrefs.map((href) => `<mailbox href="${escapeAttribute(href)}"/>`).join("")
  }</cabinet>`

const expectStatus = (answer: Answered, status: number): Answered => {
  if (answer.status !== status) throw new Error(`${answer.status}: ${answer.text}`)
  return answer
}

export const startCabinets = async (): Promise<Cabinets> => {
  const service = await startService(resourceTable)
  const { send } = service
  const account = await send("POST", "/accounts", {
    basic: owner,
    body: "<account><name>bob</name></account>"
  })
  return {
    ...service,
    bob: `bob:${account.child("token")}`,
    open: async (name) => {
      const body = `<mailbox><name>${name}</name></mailbox>`
      const opened = expectStatus(await send("POST", "/mailboxes", { basic: owner, body }), 201)
      return childOf(opened.xml, "shared")?.attributes["href"] ?? ""
    },
    deposit: async (name, description, url) => {
      const body = notification(description, url)
      expectStatus(await send("POST", `/mailboxes/${name}`, { body }), 202)
    },
    make: async (hrefs, more, by = owner) => {
      const body = cabinetOf(hrefs, more)
      return expectStatus(await send("POST", "/cabinets", { basic: by, body }), 201).header(
        "location"
      )
    },
    read: async (href, by = owner) => expectStatus(await send("GET", href, { basic: by }), 200)
  }
}

/** Waits until a deposit gets another time of receipt: mailboxes have no order within one. */
export const nextReceiptTime = async (): Promise<void> => {
  const nowMs = Date.now()
  while (Date.now() <= nowMs) await new Promise((resolve) => setImmediate(resolve))
}

/** `<mailbox>/<description>` of each notification, in their order. */
export const descriptionsIn = (answer: Answered): ReadonlyArray<string> =>
  childrenOf(answer.xml, "notification").map((one) => {
    const mailbox = one.attributes["mailbox"]?.split("/").at(-1)
    return `${mailbox}/${childText(itemOf(one), "description")}`
  })

/** `<name> <readable>` of each mailbox. */
export const rightsIn = (answer: Answered): ReadonlyArray<string> =>
  childrenOf(answer.xml, "mailbox").map(({ attributes }) =>
    `${attributes["href"]?.split("/").at(-1)} ${attributes["readable"]}`
  )

/** The URI of the next page; undefined on the last one. */
export const nextOf = (answer: Answered): string | undefined =>
  /<([^>]*)>; rel="next"/.exec(answer.header("link"))?.[1]
