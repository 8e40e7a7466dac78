/**
 * Everything XML, under one name: the rest of `http/` imports this file only, and `http/xml/` alone
 * imports xml-js and saxes.
 */

export { decodeDocument } from "./xml/decode.ts"
export { parseDocument, parseFragment, parseText } from "./xml/document.ts"
export {
  childOf,
  childrenOf,
  element,
  escapeAttribute,
  failure,
  isName,
  isText,
  success,
  textOf,
  writeDocument,
  writeElement,
  xmlDeclaration
} from "./xml/element.ts"
export type { AttributesInput, Element, Result, XmlFault } from "./xml/element.ts"
export { notificationElement, storedFragment } from "./xml/fragment.ts"
export type { FragmentChanges } from "./xml/fragment.ts"
export { XmlRefusal } from "./xml/guard.ts"
export { fromJson, parseJsonDocument, toJson } from "./xml/json.ts"
export type { AttributeNames, JsonDocument } from "./xml/json.ts"
export { parseNotification, parseNotificationText } from "./xml/notification.ts"
export { rowParser } from "./xml/rows.ts"
export { isUri } from "./xml/rules.ts"
export type { NotificationDocument, ParsedInlineContent, RuleBroken } from "./xml/rules.ts"
