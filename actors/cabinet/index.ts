/** Cabinets: merged views of mailboxes (protocol §1.5). */
export { cabinet, cabinetKind } from "./actor.ts"
export { CabinetContent, CabinetMessage, type CabinetQuery, type CabinetReply, type CabinetView,
  type KeptMailbox } from "./protocol.ts"
