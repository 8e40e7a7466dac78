/** The OpenAPI document from what each resource says of its operations. */
export { type DescribedRow, documentOf, type DocumentPart } from "./document.ts"
export { type AnswerDescription, type Area, type BodyDescription, button, document, events, feeds,
  file, formBody, type HeaderName, kept, type Method, nothing, type Operation, type OperationKey,
  paging, type Parameter, seeOther, view, withoutPage } from "./operation.ts"
export { attribute, attributes, digits, elementText, flag, formOf, list, object, oneOf, open, ref,
  root, type Schema, text, time, uri } from "./schema.ts"
