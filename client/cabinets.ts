/** Cabinets (protocol §1.5): several mailboxes read as one. */
import { type Notification, notificationFrom } from "./notifications.ts"
import { type CursorListingOptions, defined, type HttpTransport, type JsonObject, linkOf, listOf,
  optionalText, RemoteResource, textOf, withQuery } from "./transport/index.ts"

/** The definition of a cabinet. */
export interface CabinetContents {
  readonly title?: string | undefined
  /** URIs of mailboxes. */
  readonly mailboxes: ReadonlyArray<string>
  /** Only notifications with this text. */
  readonly contains?: string | undefined
  /** Only notifications since this time, RFC 3339. */
  readonly since?: string | undefined
}

/** A notification with the URI of its mailbox. */
export interface Filed extends Notification {
  readonly mailbox: string
}

/** A mailbox of a cabinet as a page of it shows. */
export interface CabinetMailboxState {
  readonly href: string
  /** Whether the owner of the cabinet may read it, and it could be read. */
  readonly readable: boolean
  /** Whether notifications in it that followed `after` have been removed. */
  readonly discarded: boolean
}

/** A page of a cabinet, in the order of receipt. */
export interface CabinetPage {
  readonly title: string
  /** Continue with `read({ after: cursor })`. */
  readonly cursor: string
  readonly more: boolean
  readonly mailboxes: ReadonlyArray<CabinetMailboxState>
  readonly notifications: ReadonlyArray<Filed>
}

export const documentOfCabinet = (
  { contains, mailboxes, since, title }: CabinetContents
): JsonObject => ({
  ...defined({ title }),
  mailbox: mailboxes.map((href) => ({ href })),
  ...contains === undefined && since === undefined ? {} : { query: defined({ contains, since }) }
})

/** Reads a notification in an answer of the cabinet `source`. */
const filedFrom = (transport: HttpTransport, source: string) => (document: JsonObject): Filed => ({
  ...notificationFrom(transport, source)(document),
  mailbox: transport.resolve(textOf(document, "mailbox"), source)
})

/** A cabinet, by its URI. */
export class Cabinet extends RemoteResource {
  /** One page. Throws UnknownCursor if `after` is a cursor that is not of this cabinet. */
  async read(
    { after, limit, signal }: {
      readonly after?: string | undefined
      readonly limit?: number | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<CabinetPage> {
    const uri = withQuery(this.href, { since: after, limit })
    const { document, headers } = await this.transport.request({ method: "GET", uri, signal })
    return {
      title: optionalText(document, "title") ?? "",
      cursor: textOf(document, "time"),
      more: linkOf(headers.get("link"), "next") !== undefined,
      mailboxes: listOf(document, "mailbox").map((one) => ({
        href: textOf(one, "href"),
        readable: optionalText(one, "readable") !== "false",
        discarded: optionalText(one, "discarded") === "true"
      })),
      notifications: listOf(document, "notification")
        .map(filedFrom(this.transport, this.href))
    }
  }

  /** All its notifications, page by page. Throws UnknownCursor as `read` does. */
  notifications(options: CursorListingOptions = {}): AsyncGenerator<Filed, void, void> {
    const decode = filedFrom(this.transport, this.href)
    return this.transport.list(this.href, "notification", decode, options)
  }

  async replace(contents: CabinetContents): Promise<void> {
    await this.transport.put(this.href, documentOfCabinet(contents))
  }
}
