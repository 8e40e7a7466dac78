/** Content and receipts as resources (protocol §1.1). */
export { linkedContent, noteLink, removeLink } from "./content-links.ts"
export { sweepReservations } from "./content-reservations.ts"
export { contentResource } from "./content-resource.ts"
export { contentNames, type InlinePublication, publishInline,
  typeOrUnnamed } from "./publication.ts"
export { chargeNetwork, chargePrepaid } from "./quota.ts"
export { receiptElement } from "./receipts.ts"
export { readBeginning, readShownMessage, type ShownFile,
  type ShownMessage } from "./shown-message.ts"
