/** A table that is sorted by a click on a head and, where it is long, filtered by a text. On narrow screens a row is a card. */
import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  getFilteredRowModel,
  getSortedRowModel,
  type SortingState,
  useReactTable,
} from '@tanstack/react-table';
import { useMemo, useState } from 'preact/hooks';
import { type Line, piecesOf, type Table as Data } from '../../src/report/blocks';
import { valueText } from '../../src/report/format';
import { Pieces } from './blocks';

type Row = readonly Line[];
/** Rows from which a filter is worth its place. */
const MANY = 12;

function textOf(line: Line): string {
  return piecesOf(line)
    .map((piece) => {
      if (typeof piece === 'string') return piece;
      if ('text' in piece) return piece.text;
      if ('code' in piece) return piece.code;
      if ('link' in piece) return piece.link;
      if ('rollout' in piece) return piece.rollout;
      return 'value' in piece ? valueText(piece) : '';
    })
    .join(' ');
}

/** By its first figure; a number that stands as text, `12,400`, is one too. */
function orderOf(line: Line): number | string {
  const figure = piecesOf(line).find((piece) => typeof piece === 'object' && 'value' in piece);
  if (figure && typeof figure === 'object' && 'value' in figure) return figure.value ?? -Infinity;
  const text = textOf(line);
  const number = Number(text.replaceAll(',', '').replace(/[%$]| .*$/g, ''));
  return text !== '' && Number.isFinite(number) ? number : text.toLowerCase();
}

export function Table({ table: { columns, rows } }: { table: Data }) {
  const [sorting, setSorting] = useState<SortingState>([]);
  const [globalFilter, setFilter] = useState('');
  const data = useMemo(() => [...rows], [rows]);
  const defined = useMemo(
    () =>
      columns.map(({ head }, n): ColumnDef<Row> => ({
        id: `${n}`,
        header: head,
        accessorFn: (row) => textOf(row[n]),
        cell: ({ row }) => (
          <div>
            <Pieces line={row.original[n]} folds />
          </div>
        ),
        // Of numbers the largest come first.
        sortDescFirst: typeof orderOf(rows[0]?.[n]) === 'number',
        sortingFn: (a, b) => {
          const [one, other] = [orderOf(a.original[n]), orderOf(b.original[n])];
          if (typeof one === typeof other) return one < other ? -1 : one > other ? 1 : 0;
          return typeof one === 'string' ? -1 : 1;
        },
      })),
    [columns, rows],
  );
  const table = useReactTable({
    ...{ data, columns: defined, state: { sorting, globalFilter }, onSortingChange: setSorting },
    ...{ onGlobalFilterChange: setFilter, globalFilterFn: 'includesString', getCoreRowModel: getCoreRowModel() },
    ...{ getSortedRowModel: getSortedRowModel(), getFilteredRowModel: getFilteredRowModel() },
  });
  const arrow = { asc: ' ↑', desc: ' ↓' };
  return (
    <>
      {rows.length >= MANY && (
        <input
          type="search"
          aria-label="Filter rows"
          placeholder={`Filter ${rows.length} rows`}
          value={globalFilter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
      )}
      <div class="scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            {table.getHeaderGroups().map((group) => (
              <tr key={group.id}>
                {group.headers.map(({ id, column, getContext }) => {
                  const sorted = column.getIsSorted();
                  return (
                    <th key={id} aria-sort={sorted ? (sorted === 'asc' ? 'ascending' : 'descending') : undefined}>
                      <button type="button" onClick={column.getToggleSortingHandler()}>
                        {flexRender(column.columnDef.header, getContext())}
                        {sorted && arrow[sorted]}
                      </button>
                    </th>
                  );
                })}
              </tr>
            ))}
          </thead>
          <tbody>
            {table.getRowModel().rows.map((row) => (
              <tr key={row.id}>
                {row.getVisibleCells().map(({ id, column, getContext }) => (
                  <td key={id} data-head={String(column.columnDef.header)}>
                    {flexRender(column.columnDef.cell, getContext())}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
