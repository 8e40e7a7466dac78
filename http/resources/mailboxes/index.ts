/** Mailboxes as resources (protocol §1.2). */
export { defineMailboxHandler, listAs, type MailboxRef, mailboxRefNamed, type ProvenReader,
  requireReader } from "./mailbox-access.ts"
export { entryElement, feedLinks, listingStart, type MailboxEntry, parseListingSince, readPage,
  reportRetrieved, spansOf } from "./mailbox-listing.ts"
export { mailboxOperations } from "./mailbox-operations.ts"
export { mailboxReaderHeaders } from "./mailbox-reading.ts"
export { mailboxRoutes } from "./mailbox-routes.ts"
export { fieldsOf, parseTitle } from "./mailbox-settings.ts"
export { activityOf, depositForm, entryItem, summaryOf } from "./mailbox-views.ts"
