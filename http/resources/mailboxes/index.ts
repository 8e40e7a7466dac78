/** Mailboxes as resources (protocol §1.2). */
export { serviceBlock } from "./deposit/index.ts"
export { charsOnPage, discardedFields, discardedNotice, entryOf, entryXml, findPosition,
  firstPageLink, hasRoom, type ListingPage, listingStart, type MailboxEntry, parseListingSince,
  positionSince, readPage, reportRetrieved, spansOf, wholeQuery } from "./listing/index.ts"
export { authorizeReader, checkSecret, defineMailboxHandler, describeForReader, describeMailbox,
  type MailboxCall, type MailboxRef, mailboxRefAt, mailboxRefNamed, mailboxRefOf, type ReaderCall,
  refuseNoMailbox, requireReader } from "./mailbox-access.ts"
export { type FirstMailbox, offeredMailboxNames, openFirstMailbox } from "./mailbox-collection.ts"
export { mailboxReaderHeaders } from "./mailbox-reading.ts"
export { mailboxResource } from "./mailbox-resource.ts"
export { defaultRetention, fieldsOf, mailboxDocument, readTitle } from "./mailbox-settings.ts"
export { depositForm, entryItem, foldedAs, listingView, notificationControls,
  summaryOf } from "./mailbox-views.ts"
export { openForm } from "./settings-views.ts"
