/** The document and the page of the listing of content. */
import type { ContentSummary } from "../../../actors/content/index.ts"
import { cardTable, emptyState, type Html, html, link, nothing, type PageLink, renderButton,
  sizeText, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { element, isoTime } from "../../formats/xml/index.ts"
import { absoluteUri, contentUri, type Service } from "../../pipeline/index.ts"

export const contentsPath = "/content"

/** A content in the listing. */
export interface ListedContent extends ContentSummary {
  readonly id: string
  readonly publishedAtMs: number
}

/** A page of the listing. */
interface ContentsPage {
  readonly href: string
  /** The account whose content it is; undefined for strangers' and everybody's. */
  readonly owner: string | undefined
  readonly isAdmin: boolean
  readonly oldestFirst: boolean
  /** What all of it counts; undefined for everybody's. */
  readonly usage:
    | { readonly bytes: number; readonly contents: number; readonly bytesMax: number }
    | undefined
  readonly contents: ReadonlyArray<ListedContent>
  readonly next: ReadonlyArray<PageLink>
}

const pathOf = (id: string): string => `${contentsPath}/${id}`

/** In a page the path is enough, unless content has an origin of its own. */
const linkOf = (service: Service, id: string): string =>
  service.settings.contentBaseUrl === undefined ? pathOf(id) : contentUri(service, id)

const row = (
  service: Service,
  { expiresAtMs, id, lengthBytes, owner, publishedAtMs, type }: ListedContent
): ReadonlyArray<Html | string> => [
  link(linkOf(service, id), type),
  timeAt(publishedAtMs),
  sizeText(lengthBytes),
  owner ?? "no account",
  expiresAtMs === undefined ? "never" : timeAt(expiresAtMs),
  renderButton(`${pathOf(id)}/removal`, "Delete", `the content ${id}`, { icon: "remove" })
]

const choices: ReadonlyArray<readonly [query: string, name: string]> = [
  ["", "everybody's, newest first"],
  ["?order=oldest", "everybody's, oldest first"],
  ["?anonymous=true", "of clients without an account"],
  ["?order=oldest&anonymous=true", "of these, oldest first"]
]

const ownChoices: ReadonlyArray<readonly [query: string, name: string]> = [
  ["", "newest first"],
  ["?order=oldest", "oldest first"]
]

const page = (service: Service, { contents, href, isAdmin, usage }: ContentsPage): Html =>
  html`<p class="choices">${
    (isAdmin ? choices : ownChoices).map(([query, name]) =>
      absoluteUri(service, `${contentsPath}${query}`) === href
        ? html`<b aria-current="page">${name}</b> `
        : html`${link(`${contentsPath}${query}`, name)} `
    )
  }</p>
${
    usage === undefined ?
      nothing :
      html`<p>${usage.contents} of content use ${sizeText(usage.bytes)} of ${
        sizeText(usage.bytesMax)
      }.</p>
`
  }${
    contents.length === 0
      ? emptyState("There is nothing here.", "Content that is published appears here.")
      : cardTable(
        "Content",
        ["Type", "Published", { number: "Size" }, "Owner", "Expires", "Delete"],
        contents.map((one) => row(service, one))
      )
  }`

/** A page of the listing of content. */
export const contentsView = (service: Service, contents: ContentsPage): ResourceView => {
  const { contents: listed, href, next, owner, usage } = contents
  return {
    title: owner === undefined ? "Content" : `Content of ${owner}`,
    tree: element(
      "contents",
      {
        href,
        owner,
        "used-bytes": usage?.bytes,
        "max-bytes": usage?.bytesMax
      },
      ...listed.map((one) =>
        element("content", {
          href: contentUri(service, one.id),
          edit: service.settings.contentBaseUrl && absoluteUri(service, pathOf(one.id)),
          type: one.type,
          length: one.lengthBytes,
          published: isoTime(one.publishedAtMs),
          modified: isoTime(one.lastModifiedMs),
          owner: one.owner,
          expires: isoTime(one.expiresAtMs)
        })
      )
    ),
    body: () => page(service, contents),
    links: [...next]
  }
}
