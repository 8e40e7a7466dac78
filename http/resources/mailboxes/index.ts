/** Mailboxes as resources (protocol §1.2). */
export { serviceBlock } from "./deposit/index.ts"
export { findPosition, listingStart, parseListingSince, positionSince } from "./listing-position.ts"
export { authorizeReader, checkSecret, defineMailboxHandler, describeForReader, describeMailbox,
  type MailboxCall, type MailboxRef, mailboxRefAt, mailboxRefNamed, mailboxRefOf, type ReaderCall,
  refuseNoMailbox, requireReader } from "./mailbox-access.ts"
export { type FirstMailbox, openFirstMailbox } from "./mailbox-collection.ts"
export { charsOnPage, discardedFields, discardedNotice, entryOf, entryXml, firstPageLink, hasRoom,
  type ListingPage, type MailboxEntry, readPage, reportRetrieved, spansOf,
  wholeQuery } from "./mailbox-listing.ts"
export { mailboxReaderHeaders } from "./mailbox-reading.ts"
export { mailboxResource } from "./mailbox-resource.ts"
export { defaultRetention, fieldsOf, mailboxDocument, readTitle } from "./mailbox-settings.ts"
export { depositForm, entryItem, listingView, notificationControls, openForm,
  summaryOf } from "./mailbox-views.ts"
