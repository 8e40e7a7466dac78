/** Mailboxes as resources (protocol §1.2). */
export { listAs, type MailboxRef, mailboxRefNamed, type ProvenReader, requireReader,
  withMailbox } from "./mailbox-access.ts"
export { entryElement, feedLinks, type MailboxEntry, readPage, sinceOf, spansOf, startOf,
  tellRetrieved } from "./mailbox-listing.ts"
export { mailboxOperations } from "./mailbox-operations.ts"
export { readerHeaders } from "./mailbox-reading.ts"
export { mailboxRoutes } from "./mailbox-routes.ts"
export { fieldsOf } from "./mailbox-settings.ts"
export { activityOf, depositForm, entryItem, summaryOf } from "./mailbox-views.ts"
