/** Cabinets: merged views of mailboxes (protocol §1.5). */
export { cabinet, cabinetKind } from "./actor.ts"
export { CabinetContent, cabinetListing, type CabinetMailbox, CabinetMessage, type CabinetQuery,
  type CabinetReply, type CabinetView } from "./protocol.ts"
