/** What a running service reports of itself, in its service document (protocol §6). */
import { Option, Schema } from "effect"
import { parseUrl } from "../actors/index.ts"

export interface ServiceReport {
  readonly version: string
  /** The start of its URIs: its own BASE_URL. */
  readonly baseUrl: string
}

const ServiceDocument = Schema.Struct({
  version: Schema.String,
  link: Schema.Array(Schema.Struct({ rel: Schema.String, href: Schema.String }))
})

const decodeDocument = Schema.decodeUnknownOption(Schema.fromJsonString(ServiceDocument))

/** The entry of the service document that shows where the URIs begin. */
const shownPath = "/mailboxes"

/** What the service document reports; undefined if the text is none. */
export const serviceReportOf = (text: string): ServiceReport | undefined => {
  const document = Option.getOrUndefined(decodeDocument(text))
  const href = document?.link.find(({ rel }) => rel === shownPath.slice(1))?.href
  const url = href === undefined ? undefined : parseUrl(href)
  return document === undefined || url?.pathname !== shownPath
    ? undefined
    : { version: document.version, baseUrl: url.origin }
}
