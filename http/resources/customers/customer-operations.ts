/** The operations of customers and of files of customers (C2). */
import { attributes, dateTime, digits, documentRequestBody, elementText, emptyResponse, formSchema,
  list, object, oneOf, type OperationGroup, ref, type RequestBodyDescription, rootElement,
  seeOtherResponse, text, uri, viewResponse } from "../../formats/openapi/index.ts"
import { rowQuery } from "../rows/index.ts"
import { ageMax, customersTable as table } from "./customer-table.ts"

const age = {
  type: ["string", "integer"],
  minimum: 0,
  maximum: ageMax,
  pattern: "^ *[0-9]{1,3} *$"
}

/** The fields as clients send them. */
const sentFields = Object.fromEntries(
  table.fields.map(({ kind, name }) => [name, kind === "number" ? age : text])
)

/** The fields of a representation. */
const shownFields = Object.fromEntries(
  table.fields.map(({ kind, name }) => [name, kind === "number" ? digits : text])
)

const fields = Object.keys(sentFields)

const file: RequestBodyDescription = {
  kind: "stream",
  required: true,
  description: "A stream. Every row names its id; all rows are stored, or none.",
  content: {
    "application/xml": ref("NewCustomers"),
    "text/xml": ref("NewCustomers"),
    "application/json": { anyOf: [ref("NewCustomers"), list(ref("NewCustomer"))] },
    "application/x-ndjson": { type: "string", description: "A customer as JSON on each line." },
    "text/csv": {
      type: "string",
      description: "RFC 4180 with a first line that names the columns, `id` among them."
    }
  }
}

export const customerOperations: OperationGroup = {
  tag: "customers",
  about: "Customers by age, by query, and in files of many.",
  schemas: {
    NewCustomer: rootElement(
      "customer",
      { ...attributes({ id: text, href: uri }), ...sentFields },
      [
        "name",
        "age"
      ]
    ),
    NewCustomers: rootElement("customers", {
      customer: { anyOf: [ref("NewCustomer"), list(ref("NewCustomer"))] }
    }),
    Customer: rootElement("customer", { ...attributes({ href: uri }), id: text, ...shownFields }, [
      "href"
    ]),
    Customers: rootElement("customers", { customer: list(ref("Customer")) }, ["customer"]),
    Load: rootElement("load", {
      ...attributes({
        href: uri,
        rows: digits,
        read: digits,
        created: digits,
        replaced: digits,
        skipped: digits,
        started: dateTime,
        touched: dateTime,
        status: oneOf("pending", "done")
      }),
      problem: {
        anyOf: [ref("RowProblem"), list(ref("RowProblem"))],
        description: "The problems of skipped rows."
      }
    }, ["href", "status", "rows", "created", "replaced", "skipped"]),
    RowProblem: object({ ...attributes({ row: digits }), ...elementText("What is wrong.") })
  },
  operations: {
    "GET /customers": {
      id: "findCustomers",
      summary: "Customers by least age and by query (C2)",
      query: {
        agemin: {
          description: "Of this age or older.",
          schema: { anyOf: [{ type: "integer" }, { const: "" }] }
        },
        ...rowQuery
      },
      problems: ["unprocessable"],
      responses: { 200: viewResponse("Customers", "A page of them") }
    },
    "POST /customers": {
      id: "createCustomer",
      summary: "A new customer, whose id the service chooses; for the role customers",
      needs: "role",
      body: documentRequestBody("NewCustomer", { form: formSchema(fields, ["name", "age"]) }),
      responses: {
        201: viewResponse("Customer", "The customer", ["Location"]),
        303: seeOtherResponse
      }
    },
    "PUT /customers": {
      id: "loadCustomers",
      summary: "A whole file of customers; for the role customers",
      description: "With `Prefer: handling=lenient` rows with a fault are skipped; with "
        + "`respond-async` the answer does not wait.",
      needs: "role",
      headers: ["Prefer"],
      body: file,
      problems: ["unprocessable"],
      responses: {
        200: viewResponse("Load", "All rows are in the table", ["Location", "Preference-Applied?"]),
        202: viewResponse("Load", "They will be", ["Location", "Preference-Applied?"])
      }
    },
    "GET /customers/{customer}": {
      id: "getCustomer",
      summary: "A customer",
      problems: ["gone"],
      responses: { 200: viewResponse("Customer", "The customer") }
    },
    "PUT /customers/{customer}": {
      id: "putCustomer",
      summary: "Sets a customer; for the role customers",
      needs: "role",
      body: documentRequestBody("NewCustomer"),
      responses: {
        200: viewResponse("Customer", "Set over an earlier one"),
        201: viewResponse("Customer", "A new customer", ["Location"])
      }
    },
    "POST /customers/{customer}": {
      id: "changeCustomerByForm",
      summary: "PUT, or with `method=delete` DELETE, for a page's form",
      needs: "role",
      body: documentRequestBody("NewCustomer", { form: formSchema(["method", ...fields]) }),
      problems: ["gone", "precondition-failed"],
      responses: { 303: seeOtherResponse }
    },
    "DELETE /customers/{customer}": {
      id: "deleteCustomer",
      summary: "Removes a customer; for the role customers",
      needs: "role",
      problems: ["gone"],
      responses: { 204: emptyResponse("It is removed") }
    },
    "GET /loads/{load}": {
      id: "getLoad",
      summary: "How a load of a file stands",
      responses: { 200: viewResponse("Load", "How it stands") }
    }
  }
}
