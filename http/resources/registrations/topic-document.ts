/** What a WebSub subscriber gets: its topic, with the new notifications only (protocol §1.4). */
import { Schema } from "effect"
import { TopicFormat, type TopicPush } from "../../../actors/registration/index.ts"
import { html } from "../../formats/html/index.ts"
import { contentTypeOf, formatTypes, render } from "../../formats/index.ts"
import { entryItem, entryOf, listingView, mailboxRefAt, summaryOf,
  wholeQuery } from "../mailboxes/index.ts"

/** Whether a mailbox has a topic of this format. */
export const isTopicFormat = Schema.is(TopicFormat)

/** The representation that is the topic of a subscription, with the new notifications only. */
export const topicDocument = (
  { format = "xml", href, items, name, time, topic, view }: TopicPush
) => {
  const type = formatTypes[format]
  const mailbox = mailboxRefAt(href, name)
  // A subscriber reads: it gets neither the settings of the owner, nor forms.
  const entries = items.map(entryOf)
  const page = { view: { ...view, isOwner: false }, entries, time, more: false }
  const { forms: _, links = [], scripts: __, ...shown } = listingView(mailbox, page, wholeQuery)
  const body = () =>
    html`<ol class="entries">${entries.map((entry) => entryItem(summaryOf(mailbox, entry)))}</ol>
`
  const context = { links: [...links, { rel: "self", href: topic, type }] }
  return { contentType: contentTypeOf(type), body: render({ ...shown, body }, type, context) }
}
