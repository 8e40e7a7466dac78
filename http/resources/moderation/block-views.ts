/** The documents and pages of blocks. */
import { type Block, blockReasonCharsMax, blockValueCharsMax } from "../../../actors/index.ts"
import { cardTable, deleteForm, emptyState, type Html, type HtmlForm, link, renderForm,
  timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, optionalElement } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"

/** A block, below the path of its list. */
export const blockElement = (service: Service, path: string, block: Block): Element => {
  const { atMs, id, kind, reason, untilMs, value } = block
  return element(
    "block",
    { href: absoluteUri(service, `${path}/${id}`), created: isoTime(atMs) },
    element(kind, {}, value),
    optionalElement("expires", isoTime(untilMs)),
    optionalElement("reason", reason)
  )
}

/** The form that blocks. */
export const blockForm = (path: string): HtmlForm => ({
  action: path,
  legend: "Block",
  controls: [
    { name: "account", label: "Account", maxlength: blockValueCharsMax, width: "third" },
    {
      name: "network",
      label: "Network",
      maxlength: blockValueCharsMax,
      hint: "Clients without an account: an address, or 203.0.113.0/24.",
      width: "third"
    },
    {
      name: "host",
      label: "Host",
      maxlength: blockValueCharsMax,
      hint: "Of the sender or the content, such as spam.example.",
      width: "third"
    },
    {
      name: "expires",
      label: "Ends",
      type: "select",
      value: "P30D",
      options: [
        ["P1D", "in a day"],
        ["P7D", "in 7 days"],
        ["P30D", "in 30 days"],
        ["P365D", "in a year"],
        ["", "never"]
      ]
    },
    { name: "reason", label: "Reason", maxlength: blockReasonCharsMax }
  ],
  submit: "Block"
})

const rowOf = (path: string) =>
(
  { atMs, id, kind, reason = "", untilMs, value }: Block
): ReadonlyArray<Html | string> => [
  link(`${path}/${id}`, value),
  kind,
  timeAt(atMs),
  untilMs === undefined ? "never" : timeAt(untilMs),
  reason
]

/** All blocks of a scope. */
export const blocksView = (
  service: Service,
  path: string,
  title: string,
  blocks: ReadonlyArray<Block>
): ResourceView => ({
  title,
  tree: element(
    "blocks",
    { href: absoluteUri(service, path) },
    ...blocks.map((block) => blockElement(service, path, block))
  ),
  body: () =>
    blocks.length === 0
      ? emptyState("Nothing is blocked.")
      : cardTable("Blocks", ["What", "Kind", "Since", "Ends", "Reason"], blocks.map(rowOf(path))),
  forms: renderForm(blockForm(path))
})

/** One block, with the form that removes it. */
export const blockView = (service: Service, path: string, block: Block): ResourceView => ({
  title: `Block of ${block.value}`,
  tree: blockElement(service, path, block),
  forms: deleteForm(`${path}/${block.id}`, "Remove this block"),
  links: [{ rel: "collection", href: path, title: "All blocks" }]
})
