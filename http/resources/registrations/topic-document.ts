/** What a WebSub subscriber gets: its topic, with the new notifications only (protocol §1.4). */
import { Schema } from "effect"
import { TopicFormat, type TopicPush } from "../../../actors/registration/index.ts"
import { contentTypeOf, formatTypes, render } from "../../formats/index.ts"
import { entryOf, listingView, mailboxRefAt, wholeQuery } from "../mailboxes/index.ts"

/** Whether a mailbox has a topic of this format. */
export const isTopicFormat = Schema.is(TopicFormat)

/** The representation that is the topic of a subscription, with the new notifications only. */
export const topicDocument = (
  { format = "xml", href, items, name, time, topic, view }: TopicPush
) => {
  const type = formatTypes[format]
  const mailbox = mailboxRefAt(href, name)
  // A subscriber reads: it gets neither the settings of the owner, nor forms.
  const page = { view: { ...view, isOwner: false }, entries: items.map(entryOf), time, more: false }
  const { forms: _, links = [], script: __, ...shown } = listingView(mailbox, page, wholeQuery)
  const context = { links: [...links, { rel: "self", href: topic, type }] }
  return { contentType: contentTypeOf(type), body: render(shown, type, context) }
}
