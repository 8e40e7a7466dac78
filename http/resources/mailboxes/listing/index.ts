/** Pages of a mailbox's log (A11): where they begin, what passes their filter, and their links. */
export { findPosition, listingStart, parseListingSince, positionEvent, positionSince,
  unknownPosition } from "./listing-position.ts"
export { filterNames, filterText, itemIn, type MailboxFilter } from "./mailbox-filter.ts"
export { afterOpening, charsOnPage, depositLinks, discardedFields, discardedNotice, entryOf,
  entryXml, feedDate, firstPageLink, hasRoom, isFeed, latestTypes, type ListingPage,
  type ListingQuery, type MailboxEntry, nextHref, type NumberSpan, openingOf, pageLinks, readLatest,
  readListingQuery, readPage, reportRead, reportRetrieved, spansOf, wholeQuery,
  withMarks } from "./mailbox-listing.ts"
