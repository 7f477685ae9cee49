//! The products of Q4_1 weights with tokens, which Hob computes in its own way (native/q4_1.h).
#![expect(unsafe_code, reason = "ggml's functions of matrices have no safe wrapper")]

use llama_cpp_sys_2 as ggml;

/// The largest number of a quantised token. With it in every block, whole numbers are not rounded.
const LARGEST: i64 = 127;
const BLOCK: usize = 32;

/// Whole numbers that look random, the same in every run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let number = |i| if i % BLOCK == 0 { LARGEST } else { random.i64(-LARGEST..=LARGEST) };
    (0..count).map(number).map(|number| number as f32).collect()
}

/// The weights as Q4_1 has them, and their products with all tokens, a token after the other.
fn multiply(length: usize, weights: &[f32], tokens: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (rows, count) = (weights.len() / length, tokens.len() / length);
    let as_i64 = |number: usize| i64::try_from(number).expect("a size");
    // SAFETY: the context has room for all tensors, each is filled and read with its own size, and nothing outlives the context.
    unsafe {
        let room = 16 * (weights.len() + tokens.len() + rows * count) + (1 << 20);
        let params =
            ggml::ggml_init_params { mem_size: room, mem_buffer: std::ptr::null_mut(), no_alloc: false };
        let context = ggml::ggml_init(params);
        let matrix = |kind, rows| ggml::ggml_new_tensor_2d(context, kind, as_i64(length), as_i64(rows));
        let packed = matrix(ggml::GGML_TYPE_Q4_1, rows);
        let inputs = matrix(ggml::GGML_TYPE_F32, count);
        let data = ggml::ggml_get_data(packed);
        let (kind, none) = (ggml::GGML_TYPE_Q4_1, std::ptr::null());
        ggml::ggml_quantize_chunk(kind, weights.as_ptr(), data, 0, as_i64(rows), as_i64(length), none);
        let mut unpacked = vec![0.0; weights.len()];
        let unpack = (*ggml::ggml_get_type_traits(kind)).to_float.expect("a function");
        unpack(data, unpacked.as_mut_ptr(), as_i64(unpacked.len()));
        ggml::ggml_get_data_f32(inputs).copy_from_nonoverlapping(tokens.as_ptr(), tokens.len());

        let graph = ggml::ggml_new_graph(context);
        let products = ggml::ggml_mul_mat(context, packed, inputs);
        ggml::ggml_build_forward_expand(graph, products);
        assert_eq!(ggml::ggml_graph_compute_with_ctx(context, graph, 2), ggml::GGML_STATUS_SUCCESS);
        let results = std::slice::from_raw_parts(ggml::ggml_get_data_f32(products), rows * count).to_vec();
        ggml::ggml_free(context);
        (unpacked, results)
    }
}

#[test]
fn products_are_exact_for_all_shapes() {
    // Tiles that are full and not, one token and many, and rows that are longer than what is added up at once.
    for (length, rows, count) in
        [(32, 1, 1), (32, 3, 3), (576, 192, 1), (576, 100, 2), (576, 200, 17), (2080, 9, 33), (4096, 103, 7)]
    {
        let weights: Vec<f32> = numbers(length * rows, 1).iter().map(|number| number / 100.0).collect();
        let tokens = numbers(length * count, 2);
        let (weights, products) = multiply(length, &weights, &tokens);
        for (number, product) in products.iter().enumerate() {
            let row = &weights[number % rows * length..][..length];
            let token = &tokens[number / rows * length..][..length];
            let exact: f64 = row.iter().zip(token).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let size: f64 = row.iter().zip(token).map(|(a, b)| f64::from((a * b).abs())).sum();
            let difference = (f64::from(*product) - exact).abs();
            assert!(
                difference <= size * 1e-3,
                "{product}, not {exact}, for row {} and token {} of {length} x {rows} x {count}",
                number % rows,
                number / rows,
            );
        }
    }
}
