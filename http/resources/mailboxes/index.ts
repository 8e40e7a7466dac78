/** Mailboxes as resources (protocol §1.2). */
export { findPosition, listingStart, parseListingSince } from "./listing-position.ts"
export { defineMailboxHandler, describeForReader, type MailboxCall, type MailboxRef,
  mailboxRefNamed, type ReaderCall, requireReader } from "./mailbox-access.ts"
export { type ListingPage, type MailboxEntry, readPage, reportRetrieved,
  spansOf } from "./mailbox-listing.ts"
export { mailboxReaderHeaders } from "./mailbox-reading.ts"
export { mailboxResource } from "./mailbox-resource.ts"
export { defaultRetention, fieldsOf, readTitle } from "./mailbox-settings.ts"
export { depositForm, entryItem, notificationControls, openForm,
  summaryOf } from "./mailbox-views.ts"
