/** The OpenAPI document, derived from the operations of each resource. */
export { formatsOfOperation, operationsOf, type RoutedOperation,
  storesForAnyone } from "./derivation.ts"
export { documentFault } from "./document-fault.ts"
export { type DocumentPart, makeDocument, type ServiceDescription,
  withFirstTypes } from "./document.ts"
export { buttonRequestBody, bytesContent, changeByForm, documentRequestBody, emptyResponse,
  eventContent, feedContent, formRequestBody, type Operation, type OperationGroup, pagingParameters,
  type Parameter, type RequestBodyDescription, type ResponseDescription, type ResponseHeader,
  seeOtherResponse, sinceParameters, viewResponse, withoutHtml } from "./operation.ts"
export { attribute, attributes, dateTime, describingFormFields, digits, discardedSchema,
  elementOrAttribute, elementText, extensible, flag, forbidden, formSchema, ignored, list, object,
  oneOf, pageVersion, patternUpTo, type Properties, ref, rootElement, type Schema, slug,
  slugPattern, someOf, spaces, spacesPattern, text, uri, visibleText, webUri } from "./schema.ts"
