/** The representations of customers and of their loads. */
import { type Control, deleteForm, html, type HtmlForm, link, type PageLink, renderForm,
  versionControl } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime } from "../../formats/xml/index.ts"
import { pageEntriesDefault, pageEntriesMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import type { Row } from "../../query-engine/index.ts"
import { recordVersion, type RowListing, rowTable } from "../rows/index.ts"
import { ageMax, customersTable } from "./customer-table.ts"
import { type CustomerLoad, loadPath } from "./load.ts"

export const collectionPath = "/customers"

export const customerPath = (id: string): string => `${collectionPath}/${id}`

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "All customers" }

const allFields = customersTable.fields.map(({ name }) => name)

/** A customer with the fields to return. */
const customerElement = (
  service: Service,
  id: string,
  row: Row,
  fields: ReadonlyArray<string> = allFields
): Element =>
  element(
    "customer",
    { href: absoluteUri(service, customerPath(id)) },
    ...fields.map((name) => {
      const value = name === customersTable.key ? id : row[name]
      return value === undefined ? undefined : element(name, {}, value)
    })
  )

/** The form of a customer's fields: empty, or with the values of a record. */
export const fieldsForm = (action: string, value?: string): HtmlForm => {
  const row = value === undefined ? undefined : customersTable.parse(value)
  return {
    id: "put",
    action,
    legend: row === undefined
      ? "Add a customer (needs the role customers)"
      : "Change this customer",
    controls: [
      ...action === collectionPath
        ? []
        : [versionControl(value === undefined ? undefined : recordVersion(value))],
      ...customersTable.fields.map(({ kind, name }): Control => ({
        name,
        label: name.charAt(0).toUpperCase() + name.slice(1),
        required: name === "name" || name === "age",
        value: String(row?.[name] ?? ""),
        width: "half",
        ...kind === "number"
          ? { hint: `A whole number from 0 to ${ageMax}.`, inputmode: "numeric" as const }
          : {}
      }))
    ],
    submit: row === undefined ? "Add" : "Change"
  }
}

/** One customer. */
export const customerView = (service: Service, id: string, value: string): ResourceView => {
  const row = customersTable.parse(value)
  const path = customerPath(id)
  return {
    title: String(row["name"] ?? id),
    tree: customerElement(service, id, row),
    links: [collectionLink],
    forms: html`${renderForm(fieldsForm(path, value))}${deleteForm(path, "Remove this customer")}`
  }
}

/** C2 as a form, with the values of the request. */
export const findForm = (
  values: { readonly least?: string; readonly fields?: string; readonly query?: string } = {}
): HtmlForm => ({
  id: "find",
  action: collectionPath,
  method: "get",
  legend: "Find customers",
  controls: [
    {
      name: "agemin",
      label: "Least age",
      value: values.least ?? "",
      width: "third",
      inputmode: "numeric"
    },
    {
      name: "return",
      label: "Fields to show",
      value: values.fields ?? "",
      width: "third",
      hint: `Of ${allFields.join(", ")}, separated by spaces. All when empty.`
    },
    {
      name: "limit",
      label: "Rows a page",
      width: "third",
      inputmode: "numeric",
      hint: `Up to ${pageEntriesMax}; ${pageEntriesDefault} when empty.`
    },
    ...values.query === undefined
      ? []
      : [{ name: "query", label: "", type: "hidden" as const, value: values.query }]
  ],
  submit: "Find"
})

/** A page of customers; `least` is the least age as sent. */
export const customersView = (
  service: Service,
  listing: RowListing,
  least: string
): ResourceView => ({
  title: "Customers",
  tree: element(
    "customers",
    {},
    ...listing.entries.map(({ key, row }) => customerElement(service, key, row, listing.fields))
  ),
  links: listing.links,
  body: () =>
    html`${
      renderForm(findForm({
        least,
        fields: listing.fields?.join(" ") ?? "",
        ...listing.query === undefined ? {} : { query: listing.query.href }
      }))
    }${rowTable(customersTable, listing, (key) => link(customerPath(key), key))}
<p>For more conditions, create ${link("/queries", "a query")}.</p>
`,
  forms: renderForm(fieldsForm(collectionPath), "secondary")
})

/** A load and its progress. */
export const loadView = (service: Service, id: string, load: CustomerLoad): ResourceView => {
  const { at, created, problems, replaced, rows, skipped, startedMs, state, touchedMs } = load
  return {
    title: state === "done" ? "Loaded" : "Loading",
    tree: element(
      "load",
      {
        href: absoluteUri(service, loadPath(id)),
        status: state,
        rows,
        read: at,
        created,
        replaced,
        skipped,
        started: isoTime(startedMs),
        touched: isoTime(touchedMs)
      },
      ...problems.map(({ detail, row }) => element("problem", { row }, detail))
    ),
    links: [collectionLink]
  }
}
